#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "prefetch/block_sizes.h"
#include "prefetch/liveness.h"
#include "prefetch/moves/cover.h"
#include "prefetch/moves/home_search.h"
#include "prefetch/moves/schedule.h"
#include "prefetch/moves/timed_schedule.h"
#include "prefetch/plan.h"
#include "prefetch/planner.h"
#include "um/bytes.h"

namespace spillway::prefetch {

/// A plan and the length that simulate() gives it.
struct EvaluatedPlan {
  Plan plan;
  um::Nanoseconds makespan{0};
};

/// Verifies `plan` for `problem`, and only then simulates it: the simulator takes plans that
/// verify. Returns nothing where verify() refuses the plan.
[[nodiscard]] std::optional<EvaluatedPlan> evaluated(const Problem& problem, Plan plan);

/// What is decided about the moves of a plan.
struct MoveDecisions {
  CoverOrder order = CoverOrder::kLongestUnused;
  bool whole_blocks = false;  ///< no block is cut, even where the problem allows it
  /// Of 64 parts of the pool so many are kept free for what comes early (CoverOptions::spare).
  std::uint32_t spare = 0;
  std::vector<MovePreference> preferences{};
  MoveOrder move_order{};
  friend bool operator==(const MoveDecisions&, const MoveDecisions&) = default;
};

/// Makes plans for one problem, which must outlive it, from sequences of runs.
///
/// Where offloadable state is between steps is decided when it is made, by HomeSearch, evaluated
/// with every task once, and again by choose_homes(). Thread safety: plan() may be called by
/// several threads at once.
class OffloadPlanner {
 public:
  explicit OffloadPlanner(const Problem& problem);

  /// The plan that executes `runs` within the problem's budget by offloading alone: cover(), then
  /// schedule_in_time() and simulate(); with offloadable state also return_early() and add_moves(),
  /// with exchanges also schedule_in_time() as if they took no time, of which the fastest is taken,
  /// each with its renewals(). Nothing when some run does not fit.
  /// The `after` of `runs` is not looked at.
  [[nodiscard]] std::optional<EvaluatedPlan> plan(std::vector<TaskRun> runs) const;
  /// The same for who plans thousands of sequences, with one finder of the problem's graph for each
  /// thread.
  [[nodiscard]] std::optional<EvaluatedPlan> plan(std::vector<TaskRun> runs,
                                                  LifeFinder& finder) const;
  /// The same, where `moves` says what leaves.
  [[nodiscard]] std::optional<EvaluatedPlan> plan(std::vector<TaskRun> runs, LifeFinder& finder,
                                                  const MoveDecisions& moves) const;

  /// Decides where state is between steps for `runs`, beside which another choice than for every
  /// task once may be best.
  void choose_homes(std::vector<TaskRun> runs);

 private:
  // Homes of state are for `runs`.
  OffloadPlanner(const Problem& problem, std::vector<TaskRun> runs);
  [[nodiscard]] bool waits_for_exchanges() const;
  [[nodiscard]] um::Bytes spare_room(std::uint32_t parts) const;
  struct Sequence;  // of runs, and what they need
  [[nodiscard]] std::optional<EvaluatedPlan> plan(std::vector<TaskRun> runs,
                                                  const OffloadOptions& options, LifeFinder& finder,
                                                  const MoveOrder& order = {}) const;
  [[nodiscard]] std::optional<std::vector<FarInterval>> cover_state_first(
      std::span<const um::Bytes> live, std::span<const Life> lives,
      const OffloadOptions& options) const;
  [[nodiscard]] EvaluatedPlan in_time(const Sequence& sequence,
                                      std::span<const FarInterval> far_intervals,
                                      const CoverOptions& options, const MoveOrder& order,
                                      const Profile& expected) const;
  [[nodiscard]] EvaluatedPlan by_runs(const Sequence& sequence,
                                      std::span<const FarInterval> far_intervals,
                                      const CoverOptions& options) const;
  [[nodiscard]] std::vector<Swap> renewals_of(const Sequence& sequence,
                                              std::span<const FarInterval> far_intervals,
                                              const CoverOptions& options) const;

  const Problem& problem_;
  BlockSizes block_sizes_;
  bool has_offloadable_state_;
  OffloadOptions options_;
  Profile without_exchanges_;  // the problem's, where ranks exchange in no time
};

/// A plan with `runs` and everything but moves, for `problem`: the frame that planners fill. Runs
/// wait for exchanges between ranks; planners give them their other conditions (TaskRun::after).
[[nodiscard]] Plan empty_plan(const Problem& problem, std::vector<TaskRun> runs);

}  // namespace spillway::prefetch
