#include "src/cli/sweep/sweep_report.h"

#include <fmt/core.h>

#include <algorithm>
#include <string>
#include <tuple>
#include <vector>

#include "src/cli/flags/duration.h"
#include "src/cli/terminal/text_table.h"

namespace spillway::cli {
namespace {

bool is_same_scenario(const Point& a, const Point& b) {
  const auto identity = [](const Point& point) {
    return std::tie(point.key.net, point.key.batch, point.key.machine, point.key.link_factor);
  };
  return identity(a) == identity(b);
}

bool is_same_sweep_point(const Point& a, const Point& b) {
  return is_same_scenario(a, b) && a.key.position == b.key.position;
}

// The first points of `points` that are alike.
template <typename Alike>
std::span<const Point> first_group(std::span<const Point> points, const Alike& alike) {
  const auto end = std::ranges::find_if_not(
      points, [&](const Point& point) { return alike(points.front(), point); });
  return points.first(static_cast<std::size_t>(end - points.begin()));
}

std::string sweep_point_text(const Point& point) {
  if (!point.outcome) return "-";
  const auto ratio = slowdown(point);
  return ratio ? fmt::format("{:.4f}", *ratio) : "unsound";
}

// The strongest bound on what any strategy can reach, over the common denominator.
std::string bound_text(const Point& point) {
  if (!point.facts.bounds) return "-";
  const um::Nanoseconds bound = point.facts.bounds->mixed_transition;
  return fmt::format("{:.4f}", um::seconds(bound) / um::seconds(point.facts.fastest));
}

// Strategies that have no plan, with the smallest budget that works for each, or why none does.
void print_infeasible(std::span<const Point> sweep_points) {
  std::vector<std::string> said;
  for (const Point& point : sweep_points) {
    if (point.outcome || std::ranges::find(said, point.key.planner) != said.end()) continue;
    if (point.refusal.empty()) {
      fmt::print("  -: {} needs at least {}\n", point.key.planner,
                 um::to_string(point.smallest_budget));
    } else {
      fmt::print("  -: {}\n", point.refusal);
    }
    said.push_back(point.key.planner);
  }
}

void print_scenario(std::span<const Point> points) {
  const Point& first = points.front();
  const std::string precision =
      first.key.precision == "fp32" ? "" : fmt::format(" in {}", first.key.precision);
  fmt::print("{} at batch {} on {}{}, link x{:g}: {} with all near ({}); smallest budget {}\n",
             first.key.net, first.key.batch, first.key.machine, precision, first.key.link_factor,
             duration_text(first.facts.fastest), um::to_string(first.facts.resident),
             um::to_string(first.facts.smallest_budget));
  std::vector<TableLine> lines{{"budget", "bound"}};
  for (const Point& point : first_group(points, is_same_sweep_point)) {
    lines.front().push_back(point.key.planner);
  }
  for (std::span<const Point> left = points; !left.empty();) {
    const std::span<const Point> sweep_point = first_group(left, is_same_sweep_point);
    lines.push_back(
        {um::to_string(sweep_point.front().key.budget), bound_text(sweep_point.front())});
    for (const Point& point : sweep_point) lines.back().push_back(sweep_point_text(point));
    left = left.subspan(sweep_point.size());
  }
  fmt::print("{}", text_table(lines, 0));
  print_infeasible(points);
}

}  // namespace

void print_sweep(std::span<const Point> points) {
  while (!points.empty()) {
    const std::span<const Point> scenario = first_group(points, is_same_scenario);
    print_scenario(scenario);
    points = points.subspan(scenario.size());
    if (!points.empty()) fmt::print("\n");
  }
}

}  // namespace spillway::cli
