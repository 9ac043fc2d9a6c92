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

/// Totals of a managed or copy space since its construction. Subtract two readings to get a step's.
struct Counters {
  std::uint64_t faults = 0;     ///< page faults resolved
  std::uint64_t evictions = 0;  ///< pages moved out for lack of room, not by a hint
  /// Pages that a prefetch or populate found no room for, or that an offload skipped because a
  /// launch used them.
  std::uint64_t refused_hints = 0;
  std::uint64_t discarded_pages = 0;  ///< near pages dropped without write-back
  Bytes bytes_prefetched;             ///< far to near, by prefetch or by fault
  Bytes bytes_offloaded;              ///< near to far, by offload or by eviction
  Nanoseconds fault_time{0};          ///< time that threads spent in page faults

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

/// Near memory and a far store, with explicit copies between them.
class CopySpace {
 public:
  virtual ~CopySpace() = default;
  /// The near memory, page-aligned and always mapped.
  [[nodiscard]] virtual Range near() = 0;
  [[nodiscard]] virtual Copies& copies() = 0;
  [[nodiscard]] virtual Counters counters() const = 0;
  /// Describes the space for the run's summary: "far file in /scratch, direct I/O".
  [[nodiscard]] virtual std::string description() const = 0;
};

/// A slab of unified memory: more address space than near memory, moved by hints and page faults.
class ManagedSpace {
 public:
  virtual ~ManagedSpace() = default;
  /// Returns the whole slab, page-aligned. Any thread may read and write it.
  [[nodiscard]] virtual Range slab() = 0;
  [[nodiscard]] virtual Hints& hints() = 0;
  [[nodiscard]] virtual Counters counters() const = 0;
  /// Returns how many bytes of `range` are near now. A GPU's page faults are not observed, so a GPU
  /// reports what its hints alone made near. Requires: `range` lies in the slab; it may begin and
  /// end within a page. Complexity: O(pages).
  [[nodiscard]] virtual Bytes near_bytes(Range range) const = 0;
  /// Describes the space for the run's summary: "uffd_move, 2 MiB pages, far RAM".
  [[nodiscard]] virtual std::string description() const = 0;
};

/// Populates `range` and waits, so that moves may use its near memory, too. populate() alone serves
/// only launches enqueued afterwards. Requires: `idle` has no work. Throws: Error when the device
/// fails.
inline void populate_now(ManagedSpace& space, Range range, Stream& idle) {
  space.hints().populate(range);
  idle.synchronize();
}

/// How a device serves page faults on unified memory that no hint moved.
struct Faults {
  Nanoseconds time{20'000};        ///< of each, beside the page's transfer; 20 to 50 us are a GPU's
  bool spare_overwritten = false;  ///< does not fetch a page for a task that declared to overwrite
                                   ///< it whole (Hints::begin_use)
  bool evict_by_use = false;       ///< evicts the least recently used page, otherwise the oldest
};

/// Faults of the host device. The time was measured on two machines with pages of 2 MiB.
inline constexpr Faults kHostFaults{
    .time = Nanoseconds{5'200}, .spare_overwritten = true, .evict_by_use = true};

/// One thing a device can or cannot do, for `spillway devices`.
struct Capability {
  std::string name;  ///< "uffd_move"
  bool available;
  std::string comment;  ///< what it is good for, or why it is unavailable
};

/// How a device's near memory relates to far memory.
struct MemoryFacts {
  Bytes total;                    ///< near memory, whether in use or not
  bool moves_by_hints = true;     ///< managed spaces are available; their pages move
  bool hints_reach_files = true;  ///< far memory of a managed space may be a file
  bool is_host_ram = false;  ///< near memory of a GPU is the RAM: what moves to RAM frees nothing
  bool is_host = false;      ///< near and far memory in RAM are parts of the same RAM
};

/// A processor with its near and far memory. A factory for everything that depends on the hardware.
class Device {
 public:
  virtual ~Device() = default;

  [[nodiscard]] virtual std::string name() const = 0;
  [[nodiscard]] virtual std::vector<Capability> capabilities() const = 0;
  /// Returns the near bytes that a run could use now, before any budget.
  [[nodiscard]] virtual Bytes available_memory() const = 0;

  /// Returns how near memory relates to far memory.
  [[nodiscard]] virtual MemoryFacts memory_facts() const = 0;

  /// Describes how page faults without hints are served. The time is approximate.
  [[nodiscard]] virtual Faults faults() const = 0;

  /// Returns whether a managed space evicts pages to stay within its near memory.
  [[nodiscard]] virtual bool evicts() const = 0;

  /// Prepares the calling thread. Requires: called by each thread before it runs kernels on managed
  /// memory.
  virtual void prepare_kernel_thread() = 0;
  [[nodiscard]] virtual std::unique_ptr<Stream> make_stream(const std::string& name) = 0;
  /// Returns a stream for copies of plain memory. Its work never waits for unified memory.
  [[nodiscard]] virtual std::unique_ptr<Stream> make_copy_stream(const std::string& name) {
    return make_stream(name);
  }
  /// Plain near memory, which never moves.
  [[nodiscard]] virtual Memory& memory() = 0;
  /// Returns a space that charges `ledger` for each near page in use. The ledger outlives the
  /// space. Throws: Error when the far file, the paging mechanism or the memory is unavailable.
  [[nodiscard]] virtual std::unique_ptr<ManagedSpace> make_managed_space(
      const ManagedOptions& options, Ledger& ledger) = 0;
  /// Returns a space that charges no ledger; the arena that divides its near memory does.
  [[nodiscard]] virtual std::unique_ptr<CopySpace> make_copy_space(const CopyOptions& options) = 0;
};

}  // namespace spillway::um
