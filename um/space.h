#pragma once

#include <optional>
#include <string>

#include "um/bandwidth.h"
#include "um/bytes.h"
#include "um/copies.h"
#include "um/counters.h"
#include "um/hints.h"
#include "um/range.h"

namespace spillway::um {

/// How managed pages are mapped and faults caught.
enum class Paging {
  kAuto,       ///< kUffdMove where the kernel allows it, else kMemfdSegv
  kUffdMove,   ///< userfaultfd with UFFDIO_MOVE (Linux 6.8 or newer)
  kMemfdSegv,  ///< a memfd and SIGSEGV (any Linux)
};

/// Far memory: other RAM, or a file.
struct FarOptions {
  /// Empty: RAM. Else a path that does not exist yet, or a folder to put the file in.
  std::string file;
};

/// The link between near and far memory, the same each way.
struct LinkOptions {
  std::optional<Bandwidth> bandwidth;  ///< nothing: as fast as the machine copies
  Nanoseconds latency{0};              ///< added to each move of a page or copy
};

/// What a space of near and far memory is made of.
struct SpaceOptions {
  Bytes size;  ///< managed: bytes of the slab; copy: bytes of far memory. A multiple of `page`.
  Bytes near;  ///< bytes of near memory it may hold. A multiple of `page`.
  Bytes page;  ///< unit of residency: a power of two, 4 KiB to 2 MiB
  FarOptions far;
  LinkOptions link;
  Nanoseconds fault_latency{0};  ///< added to each page fault
  Paging paging = Paging::kAuto;
  /// Fills what a read must not rely on (populated and discarded pages) with a pattern of NaNs, so
  /// that a test sees a read of it.
  bool poison = false;
};

/// A slab of unified memory: more address space than near memory, moved by hints and page faults.
class ManagedSpace {
 public:
  virtual ~ManagedSpace() = default;
  /// All its addresses, page-aligned. May be read and written by any thread.
  [[nodiscard]] virtual Range slab() = 0;
  [[nodiscard]] virtual Hints& hints() = 0;
  [[nodiscard]] virtual Counters counters() const = 0;
  /// For the run's summary: "uffd_move, 2 MiB pages".
  [[nodiscard]] virtual std::string description() const = 0;
};

/// Near memory and a far store beside it, moved by explicit copies.
class CopySpace {
 public:
  virtual ~CopySpace() = default;
  /// The near memory, page-aligned and always mapped.
  [[nodiscard]] virtual Range near() = 0;
  [[nodiscard]] virtual Copies& copies() = 0;
  [[nodiscard]] virtual Counters counters() const = 0;
};

}  // namespace spillway::um
