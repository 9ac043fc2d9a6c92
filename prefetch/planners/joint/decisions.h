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

/// How long memory keeps a droppable block between its last use on the way forward and its first on
/// the way back.
enum class RetentionPolicy : std::uint8_t {
  kKeep,       ///< kept, or moved where memory is short
  kDrop,       ///< dropped, made again once
  kDropPerUse  ///< dropped, made again for each use
};

/// What the inserter is told when each of `blocks` has one of `policies`.
[[nodiscard]] std::vector<Dropped> dropped_blocks(std::span<const Recomputable> blocks,
                                                  std::span<const RetentionPolicy> policies);

/// One decision to change.
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
  /// Of a block in DecisionSpace::droppable, of a task, or of an interval in
  /// DecisionSpace::intervals.
  std::uint32_t index = 0;
  /// A RetentionPolicy, an algorithm, a Preference, a CoverOrder, a MoveDecisions::spare,
  /// or true.
  std::uint32_t value = 0;
  friend bool operator==(const Change&, const Change&) = default;
};

/// What a plan is made from: the retention policy of each droppable block, the algorithm of each
/// task, and what leaves first where memory is short.
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

/// The decisions that a problem leaves open, and the runs that they make. The problem must outlive
/// it. Thread safety: const functions may be called by several threads.
class DecisionSpace {
 public:
  explicit DecisionSpace(const Problem& problem);

  /// Cheapest per byte first; empty where the problem allows no recomputation.
  [[nodiscard]] const std::vector<Recomputable>& droppable() const { return droppable_; }
  /// Tasks that have several algorithms that fit in near memory when everything else is far.
  [[nodiscard]] const std::vector<TaskId>& choosable() const { return choosable_; }

  /// Keeps everything; each task has its fastest algorithm that fits.
  [[nodiscard]] const Decisions& start() const { return start_; }
  [[nodiscard]] std::vector<TaskRun> runs(const Decisions& decisions) const;

  /// An idle interval of a step in which every task runs once.
  struct Interval {
    DataId data{};
    std::uint32_t number = 0;  ///< among those of its block, in order of time
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
