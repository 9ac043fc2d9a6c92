#include "src/cli/sweep/suite_report.h"

#include <fmt/core.h>

#include <algorithm>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "src/sweep/sweep_json.h"

namespace spillway::cli {
namespace {

using prefetch::Bounds;

// The largest ratio to a bound, and at which budget.
struct Worst {
  double ratio = 0;
  std::size_t position = 0;

  void add(const Point& point, um::Nanoseconds Bounds::*bound) {
    if (!point.outcome || !point.outcome->makespan || !point.facts.bounds) return;
    const double here =
        um::seconds(*point.outcome->makespan) / um::seconds((*point.facts.bounds).*bound);
    if (here <= ratio) return;
    ratio = here;
    position = point.key.position;
  }
  [[nodiscard]] std::string text() const {
    return ratio > 0 ? fmt::format("{:.4f} p{}", ratio, position) : "-";
  }
};

struct Row {
  Worst moving;
  Worst mixed;
  Worst smallest;
  double slowest_planning = 0;
  double loss = 0;
};

bool is_in(const Point& point, const Point& other) {
  return point.key.net == other.key.net && point.key.machine == other.key.machine;
}

Row summarise(const SuiteResult& result, const Point& like) {
  Row row;
  for (const Point& point : result.moving) {
    if (is_in(point, like)) row.moving.add(point, &Bounds::offload);
  }
  for (const Point& point : result.mixed) {
    if (!is_in(point, like)) continue;
    (point.key.position == 0 ? row.smallest : row.mixed).add(point, &Bounds::mixed);
    if (!point.outcome) continue;
    row.slowest_planning = std::max(row.slowest_planning, um::seconds(point.outcome->planning));
    if (point.outcome->robustness) row.loss = std::max(row.loss, point.outcome->robustness->loss);
  }
  return row;
}

void print_rows(const SuiteResult& result) {
  fmt::print("{:<14} {:<6} {:>6} {:>14} {:>14} {:>12} {:>10} {:>8}\n", "worst of", "on", "tasks",
             "moving/LB2", "mixed/LB2mix", "at p0", "planning", "noise");
  for (std::size_t i = 0; i < result.mixed.size(); ++i) {
    const Point& point = result.mixed[i];
    if (i > 0 && is_in(point, result.mixed[i - 1])) continue;
    const Row row = summarise(result, point);
    fmt::print("{:<14} {:<6} {:>6} {:>14} {:>14} {:>12.4f} {:>8.3f} s {:>6.2f} %\n", point.key.net,
               point.key.machine, point.facts.tasks, row.moving.text(), row.mixed.text(),
               row.smallest.ratio, row.slowest_planning, 100 * row.loss);
  }
}

std::string measures_text(const Goal& goal) {
  std::string text;
  for (const Measure& measure : goal.measures) {
    text += fmt::format("{}{} {:.5g}", text.empty() ? "" : ", ", measure.name, measure.value);
    if (measure.limit) text += fmt::format(" (<= {:g})", *measure.limit);
  }
  return text;
}

std::string_view verdict(const Goal& goal) {
  if (goal.points == 0) return "no points";
  if (goal.is_partial) return "partial";
  return is_met(goal) ? "met" : "missed";
}

}  // namespace

void print_suite(const SuiteResult& result) {
  print_rows(result);
  fmt::print("\n");
  for (const Goal& goal : result.goals) {
    fmt::print("{} {:<9} {}\n   {}, {} points{}\n", goal.name, verdict(goal), goal.what,
               measures_text(goal), goal.points,
               goal.missing == 0 ? "" : fmt::format(", {} without a plan", goal.missing));
  }
}

nlohmann::json to_json(const SuiteResult& result) {
  nlohmann::json points = spillway::to_json(std::span<const Point>{result.moving});
  for (const Point& point : result.mixed) points.push_back(spillway::to_json(point));
  return {{"goals", spillway::to_json(std::span<const Goal>{result.goals})},
          {"points", std::move(points)},
          {"algorithm_points", spillway::to_json(std::span<const Point>{result.algorithms})},
          {"large_points", spillway::to_json(std::span<const Point>{result.large})}};
}

}  // namespace spillway::cli
