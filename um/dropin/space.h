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

/// What a space is made of. The fields are ManagedOptions' with the same names.
struct SpaceOptions {
  Bytes near;      ///< rounded down to whole pages
  Bytes capacity;  ///< of all allocations together; rounded up to whole pages
  Bytes page;      ///< zero: the largest that leaves near memory some pages to choose among
  FarOptions far;
  LinkOptions link;
  Paging paging = Paging::kAuto;
  bool oversubscribe = false;
};

/// What a space has done since it was made, and holds now.
struct SpaceCounters {
  Counters moves;
  std::uint64_t allocations = 0;
  std::uint64_t frees = 0;
  std::uint64_t touches = 0;
  Bytes allocated;
  Bytes near;
  Bytes near_peak;
};

/// An allocator over a managed slab, for programs that declare nothing: what is near may be written
/// at any time. Its user may misuse it: every argument is checked. The contract of each function is
/// spillway_um.h's, whose names they have.
///
/// Throws: Misuse, NotAllocated, OutOfMemory, Error.
/// Thread safety: every function may be called from any thread.
class Space {
 public:
  /// The device outlives it. Throws: Error when the options ask for what cannot be had.
  Space(Device& device, const SpaceOptions& options);
  Space(const Space&) = delete;
  Space& operator=(const Space&) = delete;
  /// Waits for events that free memory, and for moves.
  ~Space();

  [[nodiscard]] std::byte* allocate(Bytes size, Bytes alignment);
  void free(const void* address);
  /// Frees when `event` has fired; null: now.
  void free_after(const void* address, std::unique_ptr<const Event> event);

  void prefetch(const void* address, Bytes size, MemoryTier tier);
  /// As prefetch(), for who waits for the end: calls `done` then, or returns false when it was
  /// refused.
  [[nodiscard]] bool start_move(const void* address, Bytes size, MemoryTier tier, Completion done);
  void discard(const void* address, Bytes size);
  void advise(const void* address, Bytes size, Advice advice);
  void touch(const void* address, Bytes size, Access access);
  void synchronize();

  /// All of the live allocation that the range lies in. Throws: NotAllocated.
  [[nodiscard]] Range allocation(const void* address, Bytes size) const;
  /// All its addresses.
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
  /// The range itself. Throws: NotAllocated unless it lies within one live allocation.
  [[nodiscard]] Allocations::Span checked(const void* address, Bytes size) const;
  [[nodiscard]] Range range(Allocations::Span span) const;
  [[nodiscard]] Range whole_pages_around(Allocations::Span span) const;
  void give_back(Bytes offset);
  void reclaim();
  [[nodiscard]] bool wait_for_room();
  void touch_page(Range part, Access access);

  const ManagedOptions options_;
  Ledger ledger_;
  MovesUnderWay moves_;
  MovesUnderWay hinted_;                         // those of them that prefetch() started
  const std::unique_ptr<ManagedSpace> managed_;  // its moves use the three above
  const Range slab_;

  mutable std::mutex mutex_;  // guards what follows, and the order of hints on one allocation
  Allocations allocations_;
  std::vector<Leaving> leaving_;  // in the order of free_after()
  std::vector<bool> has_advice_;  // by page
  SpaceCounters counters_;        // what happens here
};

}  // namespace spillway::um
