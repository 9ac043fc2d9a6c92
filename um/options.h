#pragma once

#include <algorithm>
#include <cstddef>
#include <optional>
#include <span>
#include <string>

#include "um/bytes.h"
#include "um/error.h"

namespace spillway::um {

/// Far memory: other RAM, or a file.
struct FarOptions {
  /// Empty: RAM. Else a path that does not exist yet, or a folder to put the file in.
  std::string file;
  /// Of unified memory, the bytes that will ever be far, where that is known: a GPU's driver takes
  /// RAM for them only as they leave, and nobody could stop then.
  Bytes used;
  /// Every 4 KiB in a file has a checksum, in RAM: what the disk spoils is found when it is read.
  bool checksums = true;
};

/// The link between near and far memory, the same each way.
struct LinkOptions {
  std::optional<Bandwidth> bandwidth;  ///< nothing: as fast as the machine copies
  Nanoseconds latency{0};              ///< added to each move of a page or copy
};

/// What a copy space is made of.
struct CopyOptions {
  Bytes size;  ///< bytes of far memory
  Bytes near;  ///< bytes of near memory
  FarOptions far;
  LinkOptions link;
};

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
  /// Tells the driver which pages were discarded. Else they stay where they are until they are
  /// overwritten: no calls, but an eviction would write them back. Nothing: where there may be
  /// evictions, when oversubscribed.
  std::optional<bool> discards;
  /// A step whose blocks all have fixed places is captured once and repeated as one piece of work
  /// (a CUDA graph); else the host launches each step anew.
  bool graph = true;

  [[nodiscard]] bool tells_discards() const { return discards.value_or(oversubscribe); }
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

/// Far memory as a processor beside it reaches it: not over the link, and without near memory.
///
/// Thread safety: calls on ranges that do not overlap may run at the same time, also beside moves
/// of other ranges.
class FarSide {
 public:
  virtual ~FarSide() = default;

  /// The same bytes where they lie, when they lie in RAM; else empty.
  [[nodiscard]] virtual Range addresses(Bytes /*offset*/, Bytes /*size*/) { return {}; }
  /// Return when the bytes have been copied. Requires: address, offset and size are multiples of
  /// 4096. Throw: Error when a file cannot be read or written, or no longer holds what was written.
  virtual void read(Bytes offset, Range to) = 0;
  virtual void write(Bytes offset, std::span<const std::byte> from) = 0;
};

/// Far memory in RAM where it has addresses, whoever moves what is in it.
class FarRange final : public FarSide {
 public:
  explicit FarRange(Range memory) : memory_{memory} {}

  [[nodiscard]] Range addresses(Bytes offset, Bytes size) override {
    expects(offset.count() <= memory_.size() && size.count() <= memory_.size() - offset.count(),
            "a range of the far memory");
    return memory_.subspan(offset.count(), size.count());
  }
  void read(Bytes offset, Range to) override {
    std::ranges::copy(addresses(offset, Bytes{to.size()}), to.begin());
  }
  void write(Bytes offset, std::span<const std::byte> from) override {
    std::ranges::copy(from, addresses(offset, Bytes{from.size()}).begin());
  }

 private:
  Range memory_;
};

}  // namespace spillway::um
