#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "prefetch/liveness.h"
#include "prefetch/moves/cover.h"
#include "prefetch/moves/offload_plan.h"
#include "prefetch/moves/recomputation.h"
#include "prefetch/plan.h"
#include "prefetch/planner.h"

namespace spillway::prefetch {

/// The fate of a droppable block between its last forward and its first backward use.
enum class RetentionPolicy : std::uint8_t {
  kKeep,       ///< kept, or moved if memory is short
  kDrop,       ///< dropped, recomputed once
  kDropPerUse  ///< dropped, recomputed for each use
};

/// Returns the inserter's input when each of `blocks` has its policy in `policies`.
[[nodiscard]] std::vector<Dropped> dropped_blocks(std::span<const Recomputable> blocks,
                                                  std::span<const RetentionPolicy> policies);

/// A change of one decision.
struct Change {
  enum class What : std::uint8_t {
    kPolicy,
    kAlgorithm,
    kPreference,
    kCoverOrder,
    kWholeBlocks,
    kEager,
    kPrefetchesFirst,
    kInParts,
    kSpare
  };
  What what = What::kPolicy;
  /// Index of a block in DecisionSpace::droppable, of a task, or of an interval in
  /// DecisionSpace::intervals.
  std::uint32_t index = 0;
  /// A RetentionPolicy, an algorithm, a Preference, a CoverOrder, a MoveDecisions::spare,
  /// or true.
  std::uint32_t value = 0;
  friend bool operator==(const Change&, const Change&) = default;
};

/// The input of a plan: the retention policy of each droppable block, the algorithm of each task,
/// and the order in which blocks leave.
struct Decisions {
  std::vector<RetentionPolicy> policies;
  std::vector<std::uint32_t> algorithms;  ///< by task
  std::vector<Preference> preferences;    ///< by interval in DecisionSpace::intervals
  CoverOrder order = CoverOrder::kLongestUnused;
  bool whole_blocks = false;
  std::uint32_t spare = 0;  ///< MoveDecisions::spare
  MoveOrder move_order{};

  void apply(std::span<const Change> changes);
};

/// The open decisions of a problem, and the runs that they produce. The problem must outlive it.
/// Thread safety: const functions may be called by several threads.
class DecisionSpace {
 public:
  explicit DecisionSpace(const Problem& problem);

  /// Returns droppable blocks, cheapest per byte first; none if the problem forbids recomputation.
  [[nodiscard]] const std::vector<Recomputable>& droppable() const { return droppable_; }
  /// Returns tasks with several algorithms that fit in near memory when everything else is far.
  [[nodiscard]] const std::vector<TaskId>& choosable() const { return choosable_; }

  /// Returns decisions that keep everything, with the fastest algorithm that fits for each task.
  [[nodiscard]] const Decisions& start() const { return start_; }
  [[nodiscard]] std::vector<TaskRun> runs(const Decisions& decisions) const;

  /// An idle interval of a step in which every task runs once.
  struct Interval {
    DataId data{};
    std::uint32_t number = 0;  ///< among its block's intervals, in order of time
    Position last = 0;
    Position next = 0;
  };
  [[nodiscard]] const std::vector<Interval>& intervals() const { return intervals_; }
  [[nodiscard]] MoveDecisions moves(const Decisions& decisions) const;

 private:
  RecomputationInserter inserter_;
  std::vector<TaskRun> in_order_;
  std::vector<Recomputable> droppable_;
  std::vector<TaskId> choosable_;
  std::vector<Interval> intervals_;
  Decisions start_;
};

}  // namespace spillway::prefetch
