#include <algorithm>
#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "prefetch/moves/offload_plan.h"
#include "prefetch/moves/saved_blocks.h"
#include "prefetch/moves/swap_planner.h"
#include "prefetch/planners/strategies.h"
#include "um/error.h"

namespace spillway::prefetch {
namespace {

// Returns the numbers of tensors that configurations offload: fewer for longer steps.
std::vector<std::size_t> tensor_counts(std::size_t all, std::size_t tasks) {
  constexpr std::size_t kSteps = 32;
  constexpr std::size_t kManyTasks = 20'000;
  constexpr std::size_t kFewest = 4;
  const std::size_t affordable = kSteps * kManyTasks / std::max(kManyTasks, tasks);
  const std::size_t steps = std::min(all, std::max(kFewest, affordable));
  std::vector<std::size_t> counts{0};
  for (std::size_t i = 1; i <= steps; ++i) counts.push_back(all * i / steps);
  return counts;
}

// Returns each block `distance` layers before its use, but not before it has left: backward layers
// may lie before the forward task that reads it last.
void prefetch_ahead(std::span<Swap> swaps, std::span<const BackwardLayer> layers,
                    std::size_t distance) {
  for (Swap& swap : swaps) {
    const auto after = std::ranges::upper_bound(layers, swap.next, {}, &BackwardLayer::begin);
    const auto use = static_cast<std::size_t>(after - layers.begin()) - 1;
    swap.back = std::max(layers[use - std::min(use, distance)].begin, swap.needed);
  }
}

class Configurations {
 public:
  explicit Configurations(const Problem& problem)
      : problem_{problem},
        planner_{problem},
        saved_{find_saved_blocks(problem.graph, planner_.block_sizes(), planner_.frugal())},
        layers_{find_backward_layers(problem.graph, planner_.frugal(), saved_)} {}

  std::variant<Plan, Infeasible> best() {
    const std::vector<Swap> all = away_until_used(saved_);
    for (const std::size_t count : tensor_counts(all.size(), problem_.graph.tasks.size())) {
      for (std::size_t distance = 1; distance == 1 || distance < layers_.size(); distance *= 2) {
        std::vector<Swap> swaps{all.begin(), all.begin() + static_cast<std::ptrdiff_t>(count)};
        prefetch_ahead(swaps, layers_, distance);
        consider(std::move(swaps));
        if (count == 0) break;  // nothing to prefetch
      }
    }
    if (best_) return std::move(best_->plan);
    um::expects(smallest_.has_value(), "swaps that keep the budget make a plan that verifies");
    return *smallest_;
  }

 private:
  void consider(std::vector<Swap> swaps) {
    std::vector<TaskRun> runs = planner_.fastest_beside(swaps);
    if (!planner_.keeps_budget(runs, swaps)) {
      const Infeasible reason = planner_.infeasible(swaps);
      if (!smallest_ || reason.smallest_budget < smallest_->smallest_budget) smallest_ = reason;
      return;
    }
    planner_.leave_when_needed(runs, swaps);
    auto result = evaluated(problem_, *planner_.plan(std::move(runs), std::move(swaps)));
    if (result && (!best_ || result->makespan < best_->makespan)) best_ = std::move(result);
  }

  const Problem& problem_;
  SwapPlanner planner_;
  std::vector<FarInterval> saved_;
  std::vector<BackwardLayer> layers_;
  std::optional<EvaluatedPlan> best_;
  std::optional<Infeasible> smallest_;
};

}  // namespace

std::variant<Plan, Infeasible> plan_tflms(const Problem& problem) {
  return Configurations{problem}.best();
}

}  // namespace spillway::prefetch
