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

/// A plan and its makespan by simulate().
struct EvaluatedPlan {
  Plan plan;
  um::Nanoseconds makespan{0};
};

/// Verifies `plan` for `problem`, then simulates it; the simulator requires verified plans. Returns
/// nullopt if verify() refuses the plan.
[[nodiscard]] std::optional<EvaluatedPlan> evaluated(const Problem& problem, Plan plan);

/// Decisions about the moves of a plan.
struct MoveDecisions {
  CoverOrder order = CoverOrder::kLongestUnused;
  bool whole_blocks = false;  ///< never cuts a block, even if the problem allows it
  /// 64ths of the pool to keep free for early prefetches (CoverOptions::spare).
  std::uint32_t spare = 0;
  std::vector<MovePreference> preferences{};
  MoveOrder move_order{};
  friend bool operator==(const MoveDecisions&, const MoveDecisions&) = default;
};

/// Makes plans from sequences of runs for one problem, which must outlive it.
///
/// The constructor decides by HomeSearch where offloadable state is between steps, evaluated with
/// every task once; choose_homes() decides again. Thread safety: plan() may be called by several
/// threads at once.
class OffloadPlanner {
 public:
  explicit OffloadPlanner(const Problem& problem);

  /// Returns the plan that executes `runs` within the problem's budget by offloading alone:
  /// cover(), then schedule_in_time() and simulate(). With offloadable state, also tries
  /// return_early() and add_moves(); with exchanges, also schedule_in_time() as if they took no
  /// time. Takes the fastest, each with its renewals(). Returns nullopt when some run does not fit.
  /// Ignores the `after` of `runs`.
  [[nodiscard]] std::optional<EvaluatedPlan> plan(std::vector<TaskRun> runs) const;
  /// As plan(runs), for thousands of sequences: reuses a finder of the problem's graph, one per
  /// thread.
  [[nodiscard]] std::optional<EvaluatedPlan> plan(std::vector<TaskRun> runs,
                                                  LifeFinder& finder) const;
  /// As plan(runs, finder), with decisions about moves.
  [[nodiscard]] std::optional<EvaluatedPlan> plan(std::vector<TaskRun> runs, LifeFinder& finder,
                                                  const MoveDecisions& moves) const;

  /// Decides where state is between steps for `runs`; the best choice may differ from that for
  /// every task once.
  void choose_homes(std::vector<TaskRun> runs);

 private:
  // Chooses the homes of state for `runs`.
  OffloadPlanner(const Problem& problem, std::vector<TaskRun> runs);
  [[nodiscard]] bool waits_for_exchanges() const;
  [[nodiscard]] um::Bytes spare_room(std::uint32_t parts) const;
  struct Sequence;  // runs with their lives and demands
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
  Profile without_exchanges_;  // the problem's profile, with exchanges that take no time
};

/// Returns a plan with `runs` and everything except moves, for planners to fill. Runs wait for
/// exchanges between ranks; planners add their other conditions (TaskRun::after).
[[nodiscard]] Plan empty_plan(const Problem& problem, std::vector<TaskRun> runs);

}  // namespace spillway::prefetch
