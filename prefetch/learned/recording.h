#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "um/bytes.h"
#include "um/hints.h"

namespace spillway::prefetch {

/// The identity of a block across iterations. A recently allocated block is identified by its
/// iteration and its ordinal among the allocations there; an older block by its owner's id.
struct BlockName {
  bool is_fresh = false;   ///< allocated in this iteration, or in one of the last few
  std::uint64_t id = 0;    ///< the ordinal, or the owner's id
  std::uint64_t born = 0;  ///< of a fresh one: the iteration that allocated it; in a replay plan,
                           ///< which one of its cycle
  friend constexpr auto operator<=>(const BlockName&, const BlockName&) = default;
};

/// One declared use of a block.
struct Touch {
  BlockName block;
  um::Bytes size;  ///< of the whole block
  um::Access access = um::Access::kReadWrite;
  /// On a clock that stops during page faults: the gap to the next touch is the program's compute
  /// time with everything near.
  um::Nanoseconds at{0};
};

/// An allocation, a free or a touch.
struct RecordedEvent {
  enum class Kind { kAllocate, kFree, kTouch };
  Kind kind = Kind::kTouch;
  Touch touch;  ///< kAllocate: only block and size count; kFree: only block
};

/// The events of a program between two iteration marks, in order.
///
/// Memory: at most `max_events` events; a longer recording drops the rest and is too long.
/// Thread safety: none; use the caller's lock.
class Recording {
 public:
  /// `iteration`: its number, as in BlockName::born.
  explicit Recording(std::size_t max_events, std::uint64_t iteration = 0)
      : max_events_{max_events}, iteration_{iteration} {}

  void allocate(BlockName block, um::Bytes size);
  void free(BlockName block);
  void touch(const Touch& touch);
  /// Ends the iteration.
  void end(um::Nanoseconds at) { end_ = at; }

  [[nodiscard]] bool is_too_long() const { return is_too_long_; }
  [[nodiscard]] const std::vector<RecordedEvent>& events() const { return events_; }
  [[nodiscard]] um::Nanoseconds end() const { return end_; }
  [[nodiscard]] std::uint64_t iteration() const { return iteration_; }

 private:
  void add(const RecordedEvent& event);

  std::size_t max_events_;
  std::uint64_t iteration_;
  std::vector<RecordedEvent> events_;
  um::Nanoseconds end_{0};
  bool is_too_long_ = false;
};

/// True when both are complete and have the same events with the same blocks in the same order,
/// regardless of times. Fresh blocks are equal if they were born equally many iterations ago.
/// Complexity: O(events).
[[nodiscard]] bool agree(const Recording& a, const Recording& b);

/// Consecutive iterations that repeat: each agrees with the one `cycle` before it.
struct RecordedCycles {
  std::vector<Recording> iterations;  ///< whole cycles, at least one
  std::size_t cycle = 1;              ///< iterations
};

/// Returns the shortest cycle, of at most `longest` iterations, that the last `2 * cycle` of
/// `iterations` repeat twice. No block may live until its successor in the next cycle is allocated.
/// Complexity: O(longest * events).
[[nodiscard]] std::optional<RecordedCycles> find_cycle(std::span<const Recording> iterations,
                                                       std::size_t longest);

}  // namespace spillway::prefetch
