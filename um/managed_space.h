#pragma once

#include <string>

#include "um/bytes.h"
#include "um/counters.h"
#include "um/far_options.h"
#include "um/hints.h"
#include "um/link_options.h"
#include "um/nanoseconds.h"
#include "um/range.h"

namespace spillway::um {

/// How the host device maps managed pages and catches faults.
enum class Paging {
  kAuto,       ///< kUffdMove where the kernel allows it, else kMemfdSegv
  kUffdMove,   ///< userfaultfd with UFFDIO_MOVE (Linux 6.8 or newer)
  kMemfdSegv,  ///< a memfd and SIGSEGV (any Linux)
};

/// What only a GPU is told.
struct GpuOptions {
  /// Lets the slab be larger than the GPU's free memory less a margin. Drivers have been seen to
  /// hang the GPU, for every program, when they must evict.
  bool oversubscribe = false;
  /// Tells the driver which pages are dead. Without it they stay where they are until they are
  /// overwritten: fewer calls, but an eviction would write them back.
  bool discards = true;
};

/// What a managed space is made of.
struct ManagedOptions {
  Bytes size;  ///< bytes of the slab, and of far memory. A multiple of `page`.
  Bytes near;  ///< bytes of near memory it may hold. A multiple of `page`.
  Bytes page;  ///< unit of residency: a power of two, 4 KiB to 2 MiB
  FarOptions far;
  LinkOptions link;
  // The host device's, which does in software what a GPU does itself:
  Nanoseconds fault_latency{0};  ///< added to each page fault
  Paging paging = Paging::kAuto;
  /// Fills what a read must not rely on (populated and discarded pages) with a pattern of NaNs, so
  /// that a test sees a read of it.
  bool poison = false;
  /// Every write is declared by a use, or faults. If not, each page that has been near counts as
  /// written, whatever brought it there and whatever advice it has, and is saved when it leaves.
  bool writes_are_declared = true;
  GpuOptions gpu;
};

/// A slab of unified memory: more address space than near memory, moved by hints and page faults.
class ManagedSpace {
 public:
  virtual ~ManagedSpace() = default;
  /// All its addresses, page-aligned. May be read and written by any thread.
  [[nodiscard]] virtual Range slab() = 0;
  [[nodiscard]] virtual Hints& hints() = 0;
  [[nodiscard]] virtual Counters counters() const = 0;
  /// How many bytes of `range` are near now; on a GPU, as the hints given so far leave it: its
  /// page faults are seen by nobody. Requires: `range` is of the slab; it may begin and end within
  /// a page. Complexity: O(pages).
  [[nodiscard]] virtual Bytes near_bytes(Range range) const = 0;
  /// For the run's summary: "uffd_move, 2 MiB pages, far RAM".
  [[nodiscard]] virtual std::string description() const = 0;
};

}  // namespace spillway::um
