#include "src/sweep/goals.h"

#include <algorithm>
#include <functional>
#include <utility>

#include "src/sweep/suite.h"

namespace spillway {
namespace {

using prefetch::Bounds;
using um::seconds;

// Numbers of many points.
class Distribution {
 public:
  void add(double value) {
    largest_ = std::max(largest_, value);
    sum_ += value;
    ++count_;
  }
  [[nodiscard]] double max() const { return largest_; }
  [[nodiscard]] double mean() const { return count_ == 0 ? 0 : sum_ / static_cast<double>(count_); }
  [[nodiscard]] std::size_t count() const { return count_; }

 private:
  double largest_ = 0;
  double sum_ = 0;
  std::size_t count_ = 0;
};

using Ratio = std::function<std::optional<double>(const Point&)>;
using Choice = std::function<bool(const Point&)>;

Ratio over_bound(um::Nanoseconds Bounds::*bound) {
  return [bound](const Point& point) -> std::optional<double> {
    if (!point.outcome || !point.outcome->makespan || !point.facts.bounds) return std::nullopt;
    return seconds(*point.outcome->makespan) / seconds((*point.facts.bounds).*bound);
  };
}

bool is_any(const Point& /*point*/) { return true; }
bool is_smallest(const Point& point) { return point.key.position == 0; }
bool is_above_smallest(const Point& point) { return point.key.position > 0; }

// Some bound is more than a thousandth above the arithmetic.
bool is_hard(const Point& point) {
  if (!is_above_smallest(point) || !point.facts.bounds) return false;
  const Bounds& bounds = *point.facts.bounds;
  const um::Nanoseconds largest = std::max({bounds.beaumont, bounds.offload, bounds.mixed});
  return seconds(largest) > 1.001 * seconds(point.facts.fastest);
}

// Fills the counts of `goal` too.
Distribution collect(std::span<const Point> points, const Choice& is_chosen, const Ratio& ratio,
                     Goal& goal) {
  Distribution all;
  for (const Point& point : points) {
    if (!is_chosen(point)) continue;
    if (const auto value = ratio(point)) {
      all.add(*value);
    } else {
      ++goal.missing;
    }
  }
  goal.points += all.count();
  return all;
}

Goal judge_ratio(std::string name, std::string what, std::span<const Point> points,
                 const Choice& is_chosen, const Ratio& ratio, std::pair<double, double> limits) {
  Goal goal{.name = std::move(name), .what = std::move(what)};
  const Distribution all = collect(points, is_chosen, ratio, goal);
  goal.measures = {{.name = "max", .value = all.max(), .limit = limits.first},
                   {.name = "mean", .value = all.mean(), .limit = limits.second}};
  return goal;
}

// The same over a stronger bound: told, not judged.
void tell_transition_bound(std::span<const Point> points, const Choice& is_chosen,
                           um::Nanoseconds Bounds::*bound, Goal& goal) {
  Goal ignored;
  const Distribution all = collect(points, is_chosen, over_bound(bound), ignored);
  goal.measures.push_back({.name = "turnover_max", .value = all.max()});
  goal.measures.push_back({.name = "turnover_mean", .value = all.mean()});
}

Goal judge_moving(std::span<const Point> points) {
  Goal goal = judge_ratio("G1", "plans that only move over LB2", points, is_any,
                          over_bound(&Bounds::offload), {1.01, 1.003});
  tell_transition_bound(points, is_any, &Bounds::offload_transition, goal);
  goal.is_partial = !has_whole_suite(points);
  return goal;
}

Goal judge_smallest(std::span<const Point> points) {
  Goal goal = judge_ratio("G4", "mixed plans over LB2mix at the smallest feasible budget", points,
                          is_smallest, over_bound(&Bounds::mixed), {1.35, 1.06});
  tell_transition_bound(points, is_smallest, &Bounds::mixed_transition, goal);
  goal.is_partial = !has_whole_suite(points);
  return goal;
}

Goal judge_mixed(std::span<const Point> points) {
  Goal goal = judge_ratio("G2", "mixed plans over LB2mix, p >= 1", points, is_above_smallest,
                          over_bound(&Bounds::mixed), {1.02, 1.001});
  Goal ignored;
  const Distribution hard = collect(points, is_hard, over_bound(&Bounds::mixed), ignored);
  goal.measures.push_back({.name = "hard_max", .value = hard.max()});
  goal.measures.push_back({.name = "hard_mean", .value = hard.mean()});
  goal.measures.push_back({.name = "hard_points", .value = static_cast<double>(hard.count())});
  tell_transition_bound(points, is_above_smallest, &Bounds::mixed_transition, goal);
  goal.is_partial = !has_whole_suite(points);
  return goal;
}

Goal judge_beaumont(std::span<const Point> points) {
  Goal goal = judge_ratio("G3", "mixed plans over Beaumont's Proposition 3", points, is_any,
                          over_bound(&Bounds::beaumont), {1.07, 0.88});
  goal.is_partial = !has_whole_suite(points);
  return goal;
}

Goal judge_planning(const SuitePoints& points) {
  constexpr std::size_t kSmall = 1000;
  Goal goal{.name = "G5",
            .what =
                "seconds of planning: the suite's steps of up to 1000 tasks, and a large one of "
                "above 8000 tasks within min+10 %, a tenth of the way from its smallest feasible "
                "budget to its resident need",
            .is_partial = !has_whole_suite(points.mixed) || points.large.empty()};
  const Ratio planning = [](const Point& point) -> std::optional<double> {
    if (!point.outcome) return std::nullopt;
    return seconds(point.outcome->planning);
  };
  const Choice is_small = [](const Point& point) { return point.facts.tasks <= kSmall; };
  const Distribution small = collect(points.mixed, is_small, planning, goal);
  goal.measures = {{.name = "max", .value = small.max(), .limit = 1}};
  if (points.large.empty()) return goal;
  const Distribution large = collect(points.large, is_any, planning, goal);
  goal.measures.push_back({.name = "large", .value = large.max(), .limit = 5});
  Goal ignored;
  const Distribution ratio = collect(points.large, is_any, over_bound(&Bounds::mixed), ignored);
  goal.measures.push_back({.name = "large_over_bound", .value = ratio.max(), .limit = 1.02});
  return goal;
}

Goal judge_algorithms(std::span<const Point> points) {
  Goal goal{.name = "G6",
            .what =
                "joint choice of convolution algorithms at min+15 %: step over each task's "
                "fastest that fits",
            .is_partial = !has_all_algorithm_points(points)};
  const Ratio ratio = [](const Point& point) -> std::optional<double> {
    if (!point.outcome || !point.outcome->makespan) return std::nullopt;
    return seconds(*point.outcome->makespan) / seconds(point.facts.fastest_that_fit);
  };
  const Distribution all = collect(points, is_any, ratio, goal);
  goal.measures = {{.name = "max", .value = all.max(), .limit = 1.05},
                   {.name = "mean", .value = all.mean()}};
  return goal;
}

bool violates_memory(const Point& point) {
  if (!point.outcome) return false;
  const PlanOutcome& outcome = *point.outcome;
  return !outcome.violation.empty() || outcome.peak > point.key.budget ||
         (outcome.robustness && outcome.robustness->peak > point.key.budget);
}

Goal judge_robustness(const SuitePoints& points) {
  Goal goal{.name = "G7",
            .what =
                "plans that exceed their budget or do not verify; what 10 % noise costs mixed "
                "plans",
            .is_partial = !has_whole_suite(points.moving) || !has_whole_suite(points.mixed) ||
                          !has_all_algorithm_points(points.algorithms) || points.large.empty()};
  std::size_t violations = 0;
  for (const std::span<const Point> part :
       {points.moving, points.mixed, points.algorithms, points.large}) {
    violations += static_cast<std::size_t>(std::ranges::count_if(part, violates_memory));
  }
  const Ratio loss = [](const Point& point) -> std::optional<double> {
    if (!point.outcome || !point.outcome->robustness) return std::nullopt;
    return point.outcome->robustness->loss;
  };
  const Distribution all = collect(points.mixed, is_any, loss, goal);
  goal.measures = {{.name = "violations", .value = static_cast<double>(violations), .limit = 0},
                   {.name = "noise_loss", .value = all.max(), .limit = 0.005},
                   {.name = "noise_loss_mean", .value = all.mean()}};
  return goal;
}

}  // namespace

bool is_met(const Goal& goal) {
  return goal.points > 0 && goal.missing == 0 && !goal.is_partial &&
         std::ranges::all_of(goal.measures, [](const Measure& measure) {
           return !measure.limit || measure.value <= *measure.limit;
         });
}

std::vector<Goal> judge_goals(const SuitePoints& points) {
  return {judge_moving(points.moving),  judge_mixed(points.mixed),
          judge_beaumont(points.mixed), judge_smallest(points.mixed),
          judge_planning(points),       judge_algorithms(points.algorithms),
          judge_robustness(points)};
}

}  // namespace spillway
