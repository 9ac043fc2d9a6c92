#include "prefetch/learned/look_ahead_plan.h"

#include <array>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "prefetch/block_sizes.h"
#include "prefetch/liveness.h"
#include "prefetch/moves/cover.h"
#include "prefetch/moves/far_between_steps.h"
#include "prefetch/moves/offload_plan.h"
#include "prefetch/moves/schedule.h"
#include "prefetch/simulate/simulate.h"

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

}  // namespace

std::variant<Plan, Infeasible> look_ahead_plan(const Problem& problem) {
  auto best = LookAhead{problem}.search();
  if (!best) return infeasible(problem);
  best->plan.planner = "look-ahead";
  return std::move(best->plan);
}

}  // namespace spillway::prefetch
