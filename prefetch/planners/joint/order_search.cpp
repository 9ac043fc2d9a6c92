#include "prefetch/planners/joint/order_search.h"

#include <tbb/parallel_for.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "prefetch/block_sizes.h"
#include "prefetch/bounds/any_order.h"
#include "prefetch/moves/algorithm_choice.h"
#include "prefetch/moves/recomputation.h"
#include "prefetch/planners/joint/joint_search.h"
#include "prefetch/planners/joint/layered_order.h"
#include "prefetch/planners/joint/sequence_search.h"
#include "prefetch/planners/joint/unrolled_step.h"
#include "prefetch/planners/joint/value_graph.h"
#include "prefetch/simulate/simulate.h"
#include "um/bytes.h"

namespace spillway::prefetch {
namespace {

using um::Nanoseconds;
using Runs = std::vector<TaskRun>;

// In tasks: no order is searched for longer steps but layer by layer.
constexpr std::size_t kMostTasks = 5000;

bool may_reorder(const Problem& problem) {
  return problem.may_reorder && problem.graph.tasks.size() > 1;
}

// Returns a number of changes: `most` for large steps, fewer for small ones, which need less.
std::size_t changes_for(std::size_t tasks, std::size_t for_each_pair, std::size_t most) {
  return std::min(most, for_each_pair * tasks * tasks);
}

Runs without_reruns(Runs runs) {
  std::erase_if(runs, [](const TaskRun& run) { return run.is_recomputation; });
  return runs;
}

// A sequence, and the makespan of its plan.
struct Judged {
  Runs runs;
  Nanoseconds makespan = Nanoseconds::max();
};

std::vector<SequenceGoal> goals_of(const Problem& problem, const ValueGraph& graph,
                                   const Runs& given) {
  const um::Bytes need = need_of(problem, given).smallest_budget;
  const auto excess = static_cast<double>(um::saturating_difference(need, problem.budget).count());
  std::vector<SequenceGoal> goals;
  for (const double more : {0.0, 0.25, 0.5}) {
    goals.push_back({.pool = graph.pool + static_cast<std::int64_t>(excess * more),
                     .may_recompute = problem.may_recompute});
  }
  const LinkProfile& link = problem.profile.link;
  for (const double speed : {1.0, 0.7}) {
    goals.push_back({.pool = graph.pool,
                     .out = link.offload.bytes_per_second() * speed,
                     .in = link.prefetch.bytes_per_second() * speed,
                     .may_recompute = problem.may_recompute});
  }
  return goals;
}

bool has_reruns(const Judged& judged) {
  return std::ranges::any_of(judged.runs, &TaskRun::is_recomputation);
}

// Searches for sequences, and judges each by its plan, as it is and without its reruns.
class SequenceJudge {
 public:
  // `limit`: the makespan of a known plan.
  SequenceJudge(const Problem& problem, Nanoseconds limit)
      : given_{fastest_that_fit(problem)},
        graph_{problem, given_},
        goals_{goals_of(problem, graph_, given_)},
        planner_{problem},
        limit_{limit} {
    if (const auto plan = planner_.plan(given_)) as_given_ = plan->makespan;
  }

  // Returns orders that make the plan shorter than in the given order, and sequences with reruns
  // that take at most `longer` times the known plan; the shortest first.
  [[nodiscard]] std::vector<Judged> promising(std::size_t changes, double longer) const {
    if (graph_.pool < 0) return {};
    std::vector<Judged> judged(2 * goals_.size());
    tbb::parallel_for(std::size_t{0}, goals_.size(), [&](std::size_t i) {
      auto found = search_sequence(graph_, goals_[i], {.changes = changes});
      if (!found) return;
      judged[2 * i].runs = *found;
      judged[2 * i + 1].runs = without_reruns(std::move(*found));
      for (const std::size_t j : {2 * i, 2 * i + 1}) {
        const auto plan = planner_.plan(judged[j].runs);
        if (plan) judged[j].makespan = plan->makespan;
      }
    });
    const auto limit = um::to_double(limit_) * longer;
    std::erase_if(judged, [&](const Judged& each) {
      if (each.makespan == Nanoseconds::max()) return true;
      return has_reruns(each) ? um::to_double(each.makespan) >= limit : each.makespan >= as_given_;
    });
    std::ranges::stable_sort(judged, {}, &Judged::makespan);
    return judged;
  }

  [[nodiscard]] std::size_t count() const { return graph_.count(); }

 private:
  Runs given_;
  ValueGraph graph_;
  std::vector<SequenceGoal> goals_;
  OffloadPlanner planner_;
  Nanoseconds limit_;
  Nanoseconds as_given_ = Nanoseconds::max();
};

// Returns the best plan that begins with `runs`; nullopt if none is below `limit`.
std::optional<EvaluatedPlan> joint_from(const Problem& problem, const Runs& runs, Nanoseconds limit,
                                        int evaluations) {
  const UnrolledStep unrolled{problem, runs};
  const Problem beginning = unrolled.problem();
  SearchLimits limits = limits_for(beginning);
  limits.evaluations = std::min(limits.evaluations, evaluations);
  const auto found = joint_search(beginning, limits);
  if (!found || found->makespan >= limit) return std::nullopt;
  auto rolled_up = evaluated(problem, unrolled.rolled_up(found->plan));
  if (!rolled_up) {  // the same runs with moves of their own
    Runs again = unrolled.rolled_up(found->plan).runs;
    auto planned = OffloadPlanner{problem}.plan(std::move(again));
    if (planned) rolled_up = evaluated(problem, std::move(planned->plan));
  }
  if (!rolled_up || rolled_up->makespan >= limit) return std::nullopt;
  return rolled_up;
}

// Returns the time of a step in the graph's order without moves, waits for exchanges included; zero
// without exchanges.
Nanoseconds unmoved_step(const Problem& problem) {
  if (problem.graph.exchanges.empty()) return Nanoseconds{0};
  return simulate(empty_plan(problem, fastest_that_fit(problem)), problem.profile).makespan();
}

}  // namespace

bool may_pay_to_reorder(const Problem& problem, Nanoseconds makespan) {
  constexpr double kNear = 1.01;
  if (!may_reorder(problem)) return false;
  if (problem.graph.tasks.size() > kMostTasks && LayeredOrder{problem}.micro_batches() == 1) {
    return false;
  }
  const double least = um::to_double(std::max(any_order_bound(problem), unmoved_step(problem)));
  if (um::to_double(makespan) <= kNear * least) return false;
  return problem.may_recompute ||
         ValueGraph{problem, runs_in_order(problem.graph)}.has_other_orders();
}

std::optional<EvaluatedPlan> plan_layered(const Problem& problem, Nanoseconds limit,
                                          int evaluations) {
  constexpr int kFirst = 8;  // a search of so small a part compares orders
  constexpr double kNear = 1.25;
  const LayeredOrder layered{problem};
  const std::size_t all = layered.micro_batches();
  if (all == 1) return std::nullopt;
  const Runs given = fastest_that_fit(problem);
  const um::Bytes pool = BlockSizes{problem.graph, problem.page}.pool(problem.budget);
  std::optional<EvaluatedPlan> best;
  Runs order;
  for (const std::size_t group : {all, (all + 1) / 2}) {
    if (group == 1) continue;
    for (const std::uint64_t part : {16U, 4U}) {
      Runs runs = layered.order(given, group, um::Bytes{pool.count() / part});
      if (runs == given) continue;
      auto found = joint_from(problem, runs, best ? best->makespan : Nanoseconds::max(),
                              evaluations / kFirst);
      if (!found) continue;
      best = std::move(found);
      order = std::move(runs);
    }
  }
  if (!best || um::to_double(best->makespan) > kNear * um::to_double(limit)) return std::nullopt;
  auto longer = joint_from(problem, order, std::min(best->makespan, limit), evaluations);
  if (longer) best = std::move(longer);
  if (best->makespan >= limit) return std::nullopt;
  return best;
}

std::optional<EvaluatedPlan> plan_reordered(const Problem& problem, Nanoseconds limit,
                                            int evaluations) {
  constexpr std::size_t kFirst = 8;  // a search of so small a part decides whether to go on
  constexpr double kNear = 1.02;     // after that one
  constexpr double kLast = 1.1;
  if (problem.graph.tasks.size() > kMostTasks) return std::nullopt;
  const SequenceJudge judge{problem, limit};
  const std::size_t changes = changes_for(judge.count(), 20, 300'000);
  if (judge.promising(changes / kFirst, kNear).empty()) return std::nullopt;
  const std::vector<Judged> judged = judge.promising(changes, kLast);
  std::optional<EvaluatedPlan> best;
  for (const bool with_reruns : {true, false}) {
    const auto first = std::ranges::find(judged, with_reruns, has_reruns);
    if (first == judged.end()) continue;
    auto found = joint_from(problem, first->runs, best ? best->makespan : limit, evaluations);
    if (found) best = std::move(found);
  }
  return best;
}

std::optional<EvaluatedPlan> plan_reordered_without_moves(const Problem& problem,
                                                          Nanoseconds limit) {
  if (!may_reorder(problem) || problem.graph.tasks.size() > kMostTasks) return std::nullopt;
  Runs given = runs_in_order(problem.graph);  // first algorithms take least room
  const ValueGraph graph{problem, given};
  if (graph.pool < 0) return std::nullopt;
  const SequenceGoal goal{.pool = graph.pool, .may_recompute = problem.may_recompute};
  // Single searches end in local optima of different worth.
  constexpr std::size_t kStarts = 4;
  std::vector<std::optional<EvaluatedPlan>> found(kStarts);
  tbb::parallel_for(std::size_t{0}, kStarts, [&](std::size_t i) {
    const auto runs = search_sequence(
        graph, goal, {.changes = changes_for(graph.count(), 200, 2'000'000), .seed = i});
    if (runs) found[i] = evaluated(problem, plan_without_moves(problem, *runs));
  });
  std::optional<EvaluatedPlan> best;
  for (std::optional<EvaluatedPlan>& each : found) {
    if (!each || each->makespan >= (best ? best->makespan : limit)) continue;
    best = std::move(each);
  }
  return best;
}

}  // namespace spillway::prefetch
