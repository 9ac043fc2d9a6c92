#include "prefetch/recomputation_search.h"

#include <algorithm>
#include <set>
#include <utility>

#include "prefetch/recomputation.h"

namespace spillway::prefetch {
namespace {

class PrefixSearch {
 public:
  PrefixSearch(const Problem& problem, EvaluatedPlan best)
      : offload_{problem},
        inserter_{problem.graph},
        runs_{best.plan.runs},
        order_{find_recomputable(problem.graph, problem.profile, problem.page, runs_)},
        best_{std::move(best)} {}

  EvaluatedPlan search() {
    constexpr std::size_t kGrid = 32;
    for (std::size_t i = 1; i <= kGrid; ++i) evaluate(order_.size() * i / kGrid);
    for (std::size_t step = order_.size() / kGrid; step > 0; step /= 2) {
      const std::size_t center = best_count_;
      if (center >= step) evaluate(center - step);
      evaluate(std::min(order_.size(), center + step));
    }
    return std::move(best_);
  }

 private:
  // Drops the first `count` blocks of the order.
  void evaluate(std::size_t count) {
    if (!tried_.insert(count).second) return;
    std::vector<Dropped> dropped;
    for (std::size_t i = 0; i < count; ++i) dropped.push_back({.data = order_[i].data});
    auto plan = offload_.plan(inserter_.insert(runs_, dropped));
    if (plan && plan->makespan < best_.makespan) {
      best_ = *std::move(plan);
      best_count_ = count;
    }
  }

  OffloadPlanner offload_;
  RecomputationInserter inserter_;
  std::vector<TaskRun> runs_;
  std::vector<Recomputable> order_;
  EvaluatedPlan best_;
  std::size_t best_count_ = 0;
  std::set<std::size_t> tried_{0};
};

}  // namespace

EvaluatedPlan drop_what_is_cheap(const Problem& problem, EvaluatedPlan best) {
  return PrefixSearch{problem, std::move(best)}.search();
}

}  // namespace spillway::prefetch
