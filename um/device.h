#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "um/bytes.h"
#include "um/hints.h"
#include "um/memory.h"
#include "um/options.h"
#include "um/stream.h"

namespace spillway::um {

/// What a managed or copy space has done since it was made. Subtract two readings for a step's.
struct Counters {
  std::uint64_t faults = 0;     ///< page faults resolved
  std::uint64_t evictions = 0;  ///< pages pushed out because room was needed, not by a hint
  /// Pages that a prefetch or populate found no room for, or that an offload left out because a
  /// launch used them.
  std::uint64_t refused_hints = 0;
  std::uint64_t discarded_pages = 0;  ///< near pages dropped without write-back
  Bytes bytes_prefetched;             ///< far to near, by prefetch or by fault
  Bytes bytes_offloaded;              ///< near to far, by offload or by eviction
  Nanoseconds fault_time{0};          ///< time threads spent in page faults

  Counters& operator+=(const Counters& other) {
    faults += other.faults;
    evictions += other.evictions;
    refused_hints += other.refused_hints;
    discarded_pages += other.discarded_pages;
    bytes_prefetched += other.bytes_prefetched;
    bytes_offloaded += other.bytes_offloaded;
    fault_time += other.fault_time;
    return *this;
  }

  friend Counters operator-(Counters later, const Counters& earlier) {
    later.faults -= earlier.faults;
    later.evictions -= earlier.evictions;
    later.refused_hints -= earlier.refused_hints;
    later.discarded_pages -= earlier.discarded_pages;
    later.bytes_prefetched -= earlier.bytes_prefetched;
    later.bytes_offloaded -= earlier.bytes_offloaded;
    later.fault_time -= earlier.fault_time;
    return later;
  }
};

/// Near memory and a far store beside it, moved by explicit copies.
class CopySpace {
 public:
  virtual ~CopySpace() = default;
  /// The near memory, page-aligned and always mapped.
  [[nodiscard]] virtual Range near() = 0;
  [[nodiscard]] virtual Copies& copies() = 0;
  [[nodiscard]] virtual Counters counters() const = 0;
  /// For the run's summary: "far file in /scratch, direct I/O".
  [[nodiscard]] virtual std::string description() const = 0;
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

/// Gives `range` near memory for moves: populate() gives it only to what streams are told from then
/// on, and a move would meet it. `idle` has no work. Throws: Error when the device fails.
inline void populate_now(ManagedSpace& space, Range range, Stream& idle) {
  space.hints().populate(range);
  idle.synchronize();
}

/// How a device serves page faults of unified memory that nobody hints to.
struct Faults {
  Nanoseconds time{20'000};        ///< of each, beside the page's transfer; 20 to 50 us are a GPU's
  bool spare_overwritten = false;  ///< a page is not brought near for a task that overwrites it
                                   ///< whole and said so (Hints::begin_use)
  bool evict_by_use = false;  ///< what was used longest ago leaves, else what came near longest ago
};

/// The host device's. The time was measured on two machines, with pages of 2 MiB.
inline constexpr Faults kHostFaults{
    .time = Nanoseconds{5'200}, .spare_overwritten = true, .evict_by_use = true};

/// One thing a device can or cannot do, for `spillway devices`.
struct Capability {
  std::string name;  ///< "uffd_move"
  bool available;
  std::string comment;  ///< what it gives, or why it is not there
};

/// A processor with its near and far memory. Makes everything that depends on the hardware.
class Device {
 public:
  virtual ~Device() = default;

  [[nodiscard]] virtual std::string name() const = 0;
  [[nodiscard]] virtual std::vector<Capability> capabilities() const = 0;
  /// Near bytes a run could use now, before any budget.
  [[nodiscard]] virtual Bytes available_memory() const = 0;

  /// How it serves page faults that nobody hints to; what one takes is about right.
  [[nodiscard]] virtual Faults faults() const = 0;

  /// Whether unified memory that no hint moves keeps to the near memory of its space, by evicting.
  [[nodiscard]] virtual bool evicts() const = 0;

  /// To be called by each thread that runs kernels on managed memory, before it does.
  virtual void prepare_kernel_thread() = 0;
  [[nodiscard]] virtual std::unique_ptr<Stream> make_stream(const std::string& name) = 0;
  /// A stream for copies of plain memory: nothing it is given waits for unified memory.
  [[nodiscard]] virtual std::unique_ptr<Stream> make_copy_stream(const std::string& name) {
    return make_stream(name);
  }
  /// Plain near memory, never moved.
  [[nodiscard]] virtual Memory& memory() = 0;
  /// The space charges `ledger` for each near page while it is in use. The ledger outlives it.
  /// Throws: Error when the far file, the paging mechanism or the memory cannot be had.
  [[nodiscard]] virtual std::unique_ptr<ManagedSpace> make_managed_space(
      const ManagedOptions& options, Ledger& ledger) = 0;
  /// The space does not charge a ledger: the arena that divides its near memory does.
  [[nodiscard]] virtual std::unique_ptr<CopySpace> make_copy_space(const CopyOptions& options) = 0;
};

}  // namespace spillway::um
