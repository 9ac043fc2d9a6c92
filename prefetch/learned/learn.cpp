#include "prefetch/learned/learn.h"

#include <algorithm>
#include <array>
#include <optional>
#include <span>
#include <utility>
#include <variant>
#include <vector>

#include "prefetch/block_sizes.h"
#include "prefetch/liveness.h"
#include "prefetch/moves/cover.h"
#include "prefetch/moves/home_search.h"
#include "prefetch/moves/offload_plan.h"
#include "prefetch/moves/schedule.h"
#include "prefetch/plan.h"
#include "prefetch/planner.h"
#include "prefetch/planners/catalogue.h"
#include "prefetch/simulate/simulate.h"
#include "prefetch/verify/verify.h"

namespace spillway::prefetch {
namespace {

class LookAhead {
 public:
  explicit LookAhead(const Problem& problem)
      : problem_{problem},
        block_sizes_{problem.graph, problem.page},
        pool_{block_sizes_.pool(problem.budget)},
        runs_{runs_in_order(problem.graph)},
        lives_{find_lives(problem.graph, runs_)},
        demand_{demand(problem.graph, block_sizes_, runs_, lives_)},
        order_{by_idle_time(block_sizes_, lives_)} {}

  std::optional<EvaluatedPlan> search() {
    if (block_sizes_.pinned() > problem_.budget) return std::nullopt;
    constexpr std::array<std::uint64_t, 6> kSixteenthsFree{0, 1, 2, 4, 6, 8};
    for (const std::uint64_t free : kSixteenthsFree) {
      const um::Bytes look{pool_.count() / 16 * free};
      try_far_between_steps(pool_ - um::round_down(look, problem_.page));
    }
    return std::move(best_);
  }

 private:
  void try_far_between_steps(um::Bytes idle_pool) {
    constexpr std::size_t kGrid = 16;
    CoverOptions options{
        .chunk = problem_.chunk, .whole_blocks = problem_.whole_blocks, .homes = {}};
    options.homes.resize(problem_.graph.data.size());
    std::size_t next = 0;
    for (std::size_t i = 0; i <= kGrid; ++i) {
      for (; next < order_.size() * i / kGrid; ++next) {
        options.homes[static_cast<std::size_t>(order_[next])].far = block_sizes_.size(order_[next]);
      }
      consider(options, idle_pool);
    }
  }

  void consider(const CoverOptions& options, um::Bytes idle_pool) {
    std::vector<FarInterval> far_intervals =
        far_intervals_from_start(block_sizes_, lives_, options);
    const auto chosen =
        cover(block_sizes_, without(demand_, far_intervals), lives_, idle_pool, options);
    if (!chosen) return;
    far_intervals.insert(far_intervals.end(), chosen->begin(), chosen->end());
    EvaluatedPlan now{.plan = empty_plan(problem_, runs_)};
    add_moves(return_early(far_intervals, demand_, pool_), problem_.profile.link, now.plan);
    now.makespan = simulate(now.plan, problem_.profile).makespan();
    if (!best_ || now.makespan < best_->makespan) best_ = std::move(now);
  }

  const Problem& problem_;
  const BlockSizes block_sizes_;
  const um::Bytes pool_;
  const std::vector<TaskRun> runs_;
  const std::vector<Life> lives_;
  const std::vector<um::Bytes> demand_;
  const std::vector<DataId> order_;
  std::optional<EvaluatedPlan> best_;
};

// Plans a learned step by offloading only. Each task has one algorithm and cannot be recomputed, so
// `joint` reduces to the cover of Beaumont et al. (section 4), with state that may be far between
// cycles.
//
// The cover makes as little far as possible, so near memory is always full and a prefetch must wait
// for an offload: both transfers lie between two tasks. Some of the pool is therefore kept free for
// early prefetches: covers for several smaller pools are scheduled in the whole pool, and the
// fastest is taken. (The paper's model does not need this choice: its transfers of any part take
// effect at once.)
//
// State that is far between cycles: the best number on a grid of the blocks that are idle longest
// across cycles, per pool. Pure. Complexity: that of several dozen plans.
std::variant<Plan, Infeasible> look_ahead_plan(const Problem& problem) {
  auto best = LookAhead{problem}.search();
  if (!best) return infeasible(problem);
  best->plan.planner = "look-ahead";
  return std::move(best->plan);
}

// Small budgets need small chunks: a sixteenth of near memory can be exchanged at a time.
um::Bytes choose_chunk(const LearnOptions& options) {
  const um::Bytes sixteenth{options.budget.count() / 16};
  return std::max(options.page,
                  std::min(chunk_for(options.link), um::round_down(sixteenth, options.page)));
}

}  // namespace

std::variant<ReplayPlan, NotLearned> learn(const RecordedCycles& recorded,
                                           const LearnOptions& options) {
  const GroupingOptions grouping{.together = options.together,
                                 .max = um::Bytes{options.budget.count() / 2}};
  auto made = learn_step(recorded, options.link, options.page, grouping);
  if (auto* refused = std::get_if<NotLearned>(&made)) return std::move(*refused);
  ReplayPlan replay_plan{.step = std::move(std::get<LearnedStep>(made))};
  const TaskGraph& graph = replay_plan.step.graph;
  const Profile& profile = replay_plan.step.profile;
  const Problem problem{.graph = graph,
                        .profile = profile,
                        .budget = options.budget,
                        .page = options.page,
                        .chunk = choose_chunk(options)};
  const auto near = find_planner("on-demand").plan(problem);
  if (const auto* impossible = std::get_if<Infeasible>(&near)) {
    return NotLearned{to_string(*impossible, graph, options.budget)};
  }
  auto planned = look_ahead_plan(problem);
  if (const auto* impossible = std::get_if<Infeasible>(&planned)) {
    return NotLearned{to_string(*impossible, graph, options.budget)};
  }
  replay_plan.plan = std::move(std::get<Plan>(planned));
  const auto verdict = verify(graph, replay_plan.plan);
  if (const auto* violation = std::get_if<Violation>(&verdict)) {
    return NotLearned{"the plan does not hold: " + violation->reason};
  }
  replay_plan.computing = compute_time(profile, replay_plan.plan.runs);
  replay_plan.planned = simulate(graph, replay_plan.plan, profile).makespan();
  replay_plan.on_demand = simulate(graph, std::get<Plan>(near), profile).makespan();
  if (replay_plan.planned >= replay_plan.on_demand) {
    return NotLearned{"page faults alone are as fast as the best plan"};
  }
  return replay_plan;
}

}  // namespace spillway::prefetch
