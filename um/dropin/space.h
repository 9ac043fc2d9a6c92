#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "um/bytes.h"
#include "um/device.h"
#include "um/dropin/allocations.h"
#include "um/hints.h"
#include "um/memory.h"
#include "um/options.h"
#include "um/stream.h"

namespace spillway::um {

/// Options of a space. Fields have the meaning of the same fields in ManagedOptions.
struct SpaceOptions {
  Bytes near;      ///< rounded down to whole pages
  Bytes capacity;  ///< of all allocations together; rounded up to whole pages
  Bytes page;      ///< zero chooses the largest size that leaves enough near pages to choose from
  FarOptions far;
  LinkOptions link;
  Paging paging = Paging::kAuto;
  bool oversubscribe = false;
};

/// Totals of a space since its construction, and its present use of memory.
struct SpaceCounters {
  Counters moves;
  std::uint64_t allocations = 0;
  std::uint64_t frees = 0;
  std::uint64_t touches = 0;
  Bytes allocated;
  Bytes near;
  Bytes near_peak;
};

/// An allocator over a managed slab for programs that declare nothing: near pages may be written at
/// any time. Every argument is checked, since users may misuse it. spillway_um.h specifies the
/// functions, under the same names.
///
/// Throws: Misuse, NotAllocated, OutOfMemory, Error.
/// Thread safety: any thread may call every function.
class Space {
 public:
  /// The device outlives the space. Throws: Error when the options cannot be satisfied.
  Space(Device& device, const SpaceOptions& options);
  Space(const Space&) = delete;
  Space& operator=(const Space&) = delete;
  /// Waits for moves and for events of deferred frees.
  ~Space();

  [[nodiscard]] std::byte* allocate(Bytes size, Bytes alignment);
  /// Also brings the memory near before later work of `stream`, as far as there is room; refused
  /// pages are counted.
  [[nodiscard]] std::byte* allocate_for(ProgramStream& stream, Bytes size, Bytes alignment);
  void free(const void* address);
  /// Frees when `event` has fired, or now if it is null.
  void free_after(const void* address, std::unique_ptr<const Event> event);
  /// Frees when the work so far of `stream` has ended. If the driver may have to evict, it drops
  /// the content before that.
  void free_after(const void* address, ProgramStream& stream);

  void prefetch(const void* address, Bytes size, MemoryTier tier);
  /// Like prefetch(), but calls `done` at the end, or returns false when the move was refused.
  [[nodiscard]] bool start_move(const void* address, Bytes size, MemoryTier tier, Completion done);
  void discard(const void* address, Bytes size);
  void advise(const void* address, Bytes size, Advice advice);
  void touch(const void* address, Bytes size, Access access);
  void synchronize();

  /// Returns the whole live allocation that contains the range. Throws: NotAllocated.
  [[nodiscard]] Range allocation(const void* address, Bytes size) const;
  /// Returns the whole slab.
  [[nodiscard]] Range slab() const { return slab_; }
  [[nodiscard]] Bytes near_budget() const { return options_.near; }
  [[nodiscard]] Bytes page() const { return options_.page; }

  [[nodiscard]] Bytes near_bytes(const void* address, Bytes size) const;
  [[nodiscard]] SpaceCounters counters() const;

 private:
  struct Leaving {
    Bytes offset;
    std::unique_ptr<const Event> event;
  };

  [[nodiscard]] Bytes offset_of_allocation(const void* address) const;
  /// Returns the range itself. Throws: NotAllocated unless it lies in one live allocation.
  [[nodiscard]] Allocations::Span checked(const void* address, Bytes size) const;
  [[nodiscard]] Range range(Allocations::Span span) const;
  [[nodiscard]] Range whole_pages_around(Allocations::Span span) const;
  [[nodiscard]] Range whole_pages_in(Allocations::Span span) const;
  [[nodiscard]] std::unique_ptr<const Event> record_end(ProgramStream& stream, Range dead);
  void end_allocation(Bytes offset, std::unique_ptr<const Event> event);
  void give_back(Bytes offset);
  void reclaim();
  [[nodiscard]] bool wait_for_room();
  void touch_page(Range part, Access access);

  const ManagedOptions options_;
  Ledger ledger_;
  MovesUnderWay moves_;
  MovesUnderWay hinted_;                         // the moves that prefetch() started
  const std::unique_ptr<ManagedSpace> managed_;  // its moves use the three members above
  const Range slab_;

  mutable std::mutex mutex_;  // guards the members below and the order of hints on one allocation
  Allocations allocations_;
  std::vector<Leaving> leaving_;  // in the order of free_after()
  std::vector<bool> has_advice_;  // by page
  SpaceCounters counters_;        // updated by this class
};

}  // namespace spillway::um
