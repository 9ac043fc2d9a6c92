#include "prefetch/moves/offload_plan.h"

#include <algorithm>
#include <utility>
#include <variant>

#include "prefetch/far_update.h"
#include "prefetch/gradient_exchange.h"
#include "prefetch/liveness.h"
#include "prefetch/moves/cover.h"
#include "prefetch/moves/home_search.h"
#include "prefetch/moves/schedule.h"
#include "prefetch/moves/timed_schedule.h"
#include "prefetch/simulate/simulate.h"
#include "prefetch/verify/verify.h"

namespace spillway::prefetch {

Plan empty_plan(const Problem& problem, std::vector<TaskRun> runs) {
  Plan plan{.planner = {},
            .graph = problem.profile.graph,
            .budget = problem.budget,
            .page = problem.page,
            .runs = std::move(runs)};
  add_exchanges(problem.graph, plan);
  return plan;
}

std::optional<EvaluatedPlan> evaluated(const Problem& problem, Plan plan) {
  if (!std::holds_alternative<Verified>(verify(problem.graph, plan))) return std::nullopt;
  const um::Nanoseconds makespan = simulate(plan, problem.profile).makespan();
  return EvaluatedPlan{.plan = std::move(plan), .makespan = makespan};
}

OffloadPlanner::OffloadPlanner(const Problem& problem)
    : OffloadPlanner{problem, runs_in_order(problem.graph)} {}

OffloadPlanner::OffloadPlanner(const Problem& problem, std::vector<TaskRun> runs)
    : problem_{problem},
      block_sizes_{problem.graph, problem.page},
      has_offloadable_state_{std::ranges::any_of(problem.graph.data, &DataBlock::is_offloadable)},
      options_{.cover = {.chunk = problem.chunk, .whole_blocks = problem.whole_blocks, .homes = {}},
               .kept_free = {}} {
  if (!problem.graph.exchanges.empty()) {
    without_exchanges_ = problem.profile;
    std::ranges::fill(without_exchanges_.exchanges, ExchangeTime{});
  }
  choose_homes(std::move(runs));
}

std::optional<EvaluatedPlan> OffloadPlanner::plan(std::vector<TaskRun> runs) const {
  LifeFinder finder{problem_.graph};
  return plan(std::move(runs), finder);
}

std::optional<EvaluatedPlan> OffloadPlanner::plan(std::vector<TaskRun> runs,
                                                  LifeFinder& finder) const {
  return plan(std::move(runs), options_, finder);
}

std::optional<EvaluatedPlan> OffloadPlanner::plan(std::vector<TaskRun> runs, LifeFinder& finder,
                                                  const MoveDecisions& moves) const {
  if (moves == MoveDecisions{}) return plan(std::move(runs), options_, finder);
  OffloadOptions options = options_;
  options.cover.order = moves.order;
  options.cover.whole_blocks = options.cover.whole_blocks || moves.whole_blocks;
  options.cover.preferences = moves.preferences;
  options.cover.spare = spare_room(moves.spare);
  return plan(std::move(runs), options, finder, moves.move_order);
}

um::Bytes OffloadPlanner::spare_room(std::uint32_t parts) const {
  constexpr std::uint64_t kParts = 64;
  const um::Bytes pool = block_sizes_.pool(problem_.budget);
  return um::round_down(um::Bytes{pool.count() / kParts * parts}, problem_.page);
}

struct OffloadPlanner::Sequence {
  std::vector<TaskRun> runs;
  std::span<const Life> lives;
  std::vector<um::Bytes> live;  // by run: movable bytes that it needs when nothing is away
};

std::optional<EvaluatedPlan> OffloadPlanner::plan(std::vector<TaskRun> runs,
                                                  const OffloadOptions& options, LifeFinder& finder,
                                                  const MoveOrder& order) const {
  if (block_sizes_.pinned() > problem_.budget) return std::nullopt;
  const std::span<const Life> lives = finder.find(runs);
  std::vector<um::Bytes> live = demand(problem_.graph, block_sizes_, runs, lives);
  const auto far_intervals = cover_state_first(live, lives, options);
  if (!far_intervals) return std::nullopt;
  const Sequence sequence{.runs = std::move(runs), .lives = lives, .live = std::move(live)};
  EvaluatedPlan best = in_time(sequence, *far_intervals, options.cover, order, problem_.profile);
  const auto consider = [&best](EvaluatedPlan other) {
    if (other.makespan < best.makespan) best = std::move(other);
  };
  if (!problem_.graph.exchanges.empty()) {
    consider(in_time(sequence, *far_intervals, options.cover, order, without_exchanges_));
  }
  if (has_offloadable_state_) consider(by_runs(sequence, *far_intervals, options.cover));
  return best;
}

EvaluatedPlan OffloadPlanner::in_time(const Sequence& sequence,
                                      std::span<const FarInterval> far_intervals,
                                      const CoverOptions& options, const MoveOrder& order,
                                      const Profile& expected) const {
  const NearDemand demand{.runs = sequence.live,
                          .at_end = demand_at_end(block_sizes_, sequence.lives),
                          .pool = block_sizes_.pool(problem_.budget)};
  EvaluatedPlan result{.plan = empty_plan(problem_, sequence.runs)};
  const std::vector<FarInterval> copies = copies_from_start(sequence.lives, options);
  if (copies.empty()) {
    schedule_in_time(far_intervals, demand, expected, order, result.plan);
  } else {
    Room room{without(sequence.live, far_intervals)};
    std::vector<FarInterval> needed = needed_of(far_intervals, demand.pool, room);
    for (FarInterval renewed : renewals_of(sequence, needed, options)) {
      renewed.needed = renewed.next;
      needed.push_back(renewed);
    }
    schedule_in_time(needed, demand, expected, order, result.plan, copies);
  }
  result.plan.far_runs = earliest_far_runs(problem_.graph, result.plan);
  result.makespan = simulate(result.plan, problem_.profile).makespan();
  return result;
}

EvaluatedPlan OffloadPlanner::by_runs(const Sequence& sequence,
                                      std::span<const FarInterval> far_intervals,
                                      const CoverOptions& options) const {
  EvaluatedPlan result{.plan = empty_plan(problem_, sequence.runs)};
  std::vector<Swap> swaps =
      return_early(far_intervals, sequence.live, block_sizes_.pool(problem_.budget));
  const std::vector<FarInterval> copies = copies_from_start(sequence.lives, options);
  if (!copies.empty()) {
    const std::vector<FarInterval> kept{swaps.begin(), swaps.end()};
    const std::vector<Swap> renewed = renewals_of(sequence, kept, options);
    swaps.insert(swaps.end(), renewed.begin(), renewed.end());
  }
  add_moves(std::move(swaps), problem_.profile.link, result.plan, copies);
  result.plan.far_runs = earliest_far_runs(problem_.graph, result.plan);
  result.makespan = simulate(result.plan, problem_.profile).makespan();
  return result;
}

std::vector<Swap> OffloadPlanner::renewals_of(const Sequence& sequence,
                                              std::span<const FarInterval> far_intervals,
                                              const CoverOptions& options) const {
  std::vector<double> before{0};  // by run, and for the end: the seconds of all runs before it
  before.reserve(sequence.runs.size() + 1);
  for (const TaskRun& run : sequence.runs) {
    before.push_back(before.back() + um::seconds(problem_.profile(run)));
  }
  return renewals(far_intervals, sequence.lives, before,
                  problem_.profile.link.offload.bytes_per_second(), options);
}

// Returns far intervals from the step's start, and those of cover(), with room kept free if
// possible.
std::optional<std::vector<FarInterval>> OffloadPlanner::cover_state_first(
    std::span<const um::Bytes> live, std::span<const Life> lives,
    const OffloadOptions& options) const {
  const um::Bytes pool = block_sizes_.pool(problem_.budget);
  std::vector<FarInterval> far_intervals =
      far_intervals_from_start(block_sizes_, lives, options.cover);
  const std::vector<um::Bytes> demand = without(live, far_intervals);
  auto chosen = cover(block_sizes_, demand, lives, pool - options.kept_free, options.cover);
  if (!chosen && options.kept_free > um::Bytes{}) {
    chosen = cover(block_sizes_, demand, lives, pool, options.cover);
  }
  if (!chosen) return std::nullopt;
  far_intervals.insert(far_intervals.end(), chosen->begin(), chosen->end());
  return far_intervals;
}

void OffloadPlanner::choose_homes(std::vector<TaskRun> runs) {
  if (!has_offloadable_state_ || block_sizes_.pinned() > problem_.budget) return;
  constexpr std::size_t kWork = 600'000;  // of all evaluations together, in runs
  constexpr std::size_t kMost = 400;
  constexpr std::size_t kLeast = 6;
  const std::size_t evaluations =
      std::clamp(kWork / std::max<std::size_t>(1, runs.size()), kLeast, kMost);
  CoverOptions start = options_.cover;
  start.homes = homes_for_far_updates(problem_.graph, block_sizes_);
  const std::vector<Life> lives = find_lives(problem_.graph, runs);
  LifeFinder finder{problem_.graph};
  HomeSearch search{block_sizes_, lives, block_sizes_.pool(problem_.budget), start};
  const auto evaluate = [&](const OffloadOptions& options) -> std::optional<um::Nanoseconds> {
    const auto evaluated = plan(runs, options, finder);
    return evaluated ? std::optional{evaluated->makespan} : std::nullopt;
  };
  options_ =
      search.search(evaluate, static_cast<int>(evaluations), compute_time(problem_.profile, runs));
  if (!waits_for_exchanges()) return;
  // A search that ignores the cost of exchanges may find better homes.
  const Problem unaware = problem_.with(problem_.graph, without_exchanges_);
  const OffloadPlanner other{unaware, runs};
  const auto with_others = evaluate(other.options_);
  if (with_others && *with_others < evaluate(options_).value_or(um::Nanoseconds::max())) {
    options_ = other.options_;
  }
}

bool OffloadPlanner::waits_for_exchanges() const {
  return std::ranges::any_of(problem_.profile.exchanges, [](const ExchangeTime& exchange) {
    return exchange.alone > um::Nanoseconds{0};
  });
}

}  // namespace spillway::prefetch
