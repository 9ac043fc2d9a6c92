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

/// How learned prefetch knows a block from one iteration to the next: what an iteration allocates
/// by that iteration and its ordinal among the allocations there, what is older by the id that its
/// owner gave it.
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
  /// On a clock that stands still while the memory serves page faults, so that the gap to the next
  /// touch is what the program computes with everything near.
  um::Nanoseconds at{0};
};

/// An allocation, a free or a touch.
struct RecordedEvent {
  enum class Kind { kAllocate, kFree, kTouch };
  Kind kind = Kind::kTouch;
  Touch touch;  ///< of the others only block and size (of a free only the block) count
};

/// What a program did between two iteration marks, in order.
///
/// Memory: at most `max_events` events; after that it keeps nothing more and is too long.
/// Thread safety: none; the caller's lock.
class Recording {
 public:
  /// `iteration`: its number, as BlockName::born counts them.
  explicit Recording(std::size_t max_events, std::uint64_t iteration = 0)
      : max_events_{max_events}, iteration_{iteration} {}

  void allocate(BlockName block, um::Bytes size);
  void free(BlockName block);
  void touch(const Touch& touch);
  /// The iteration ended.
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

/// True when both are complete and did the same with the same blocks in the same order, whatever
/// the time it took. Fresh blocks are the same when they were born as long before.
/// Complexity: O(events).
[[nodiscard]] bool agree(const Recording& a, const Recording& b);

/// Iterations recorded one after another that repeat: each agrees with the one `cycle` before it.
struct RecordedCycles {
  std::vector<Recording> iterations;  ///< whole cycles, at least one
  std::size_t cycle = 1;              ///< iterations
};

/// The shortest cycle, of at most `longest` iterations, that the last `2 * cycle` of `iterations`
/// go through twice, and in which no block lives so long that its successor of the next cycle comes
/// before it is freed. Complexity: O(longest * events).
[[nodiscard]] std::optional<RecordedCycles> find_cycle(std::span<const Recording> iterations,
                                                       std::size_t longest);

}  // namespace spillway::prefetch
