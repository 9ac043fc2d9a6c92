#include "src/report/comparison.h"

#include <algorithm>
#include <array>
#include <limits>
#include <map>
#include <string_view>
#include <tuple>
#include <utility>

namespace spillway {
namespace {

using nlohmann::json;

constexpr double kSpreadOfOneRun = 0.03;

// The best known first, then the others by name.
std::pair<std::size_t, std::string> column_order(const std::string& label) {
  constexpr std::array<std::string_view, 5> kFirst{"resident", "joint", "copy", "capacity",
                                                   "on-demand"};
  const auto* const found = std::ranges::find(kFirst, label);
  return {static_cast<std::size_t>(found - kFirst.begin()), label};
}

std::size_t series_order(std::string_view series) {
  constexpr std::array<std::string_view, 3> kSeries{"budget", "batch", "planner"};
  return static_cast<std::size_t>(std::ranges::find(kSeries, series) - kSeries.begin());
}

std::vector<std::string> find_columns(const json& rows) {
  std::vector<std::string> columns;
  for (const json& row : rows) {
    const std::string label = strategy_label(row);
    if (std::ranges::find(columns, label) == columns.end()) columns.push_back(label);
  }
  std::ranges::sort(columns, {}, column_order);
  return columns;
}

// How long a step is, with how far that may be off.
struct Range {
  double from = 0;
  double to = 0;
};

// `length`: the median, or its ratio.
Range range_of(const json& row, double length) {
  const json& seconds = row.at("seconds");
  const double spread =
      seconds.at("runs") == 1 ? kSpreadOfOneRun : seconds.at("deviation").get<double>();
  return {length * (1 - spread), length * (1 + spread)};
}

// The columns that compete on a line.
std::vector<std::size_t> find_rivals(const ComparisonLine& line, const Comparison& comparison,
                                     const json& rows) {
  std::vector<std::size_t> rivals;
  for (std::size_t i = 0; i < line.rows.size(); ++i) {
    const bool competes = line.rows[i] && comparison.columns[i] != "resident";
    if (competes && rows[*line.rows[i]].contains("seconds")) rivals.push_back(i);
  }
  return rivals;
}

std::vector<std::size_t> find_fastest(const ComparisonLine& line, const Comparison& comparison,
                                      const json& rows) {
  std::vector<std::size_t> rivals = find_rivals(line, comparison, rows);
  if (rivals.size() < 2) return {};
  const auto row = [&](std::size_t i) -> const json& { return rows[*line.rows[i]]; };
  const bool have_ratios = std::ranges::all_of(rivals, [&](std::size_t i) {
    return row(i).contains("ratio") && row(i).at("ratio").is_number();
  });
  const auto length = [&](std::size_t i) -> double {
    return have_ratios ? row(i).at("ratio") : row(i).at("seconds").at("median");
  };
  const std::size_t first = *std::ranges::min_element(rivals, {}, length);
  const Range best = range_of(row(first), length(first));
  std::erase_if(rivals, [&](std::size_t i) { return range_of(row(i), length(i)).from > best.to; });
  return rivals;
}

// The bytes of the line that `row` is on: its budget's. What the resident run needed differs a
// little from "100%" of what was reckoned before, by which the others on its line are named.
std::uint64_t line_bytes(const json& row, const json& rows) {
  const std::uint64_t own = row.at("budget_bytes");
  if (strategy_label(row) != "resident") return own;
  const auto is_on_its_line = [&](const json& other) {
    if (strategy_label(other) == "resident") return false;
    return std::ranges::all_of(std::array{"series", "net", "image_size", "batch", "budget"},
                               [&](const char* key) { return row.at(key) == other.at(key); });
  };
  const auto found = std::ranges::find_if(rows, is_on_its_line);
  return found == rows.end() ? own : found->at("budget_bytes").get<std::uint64_t>();
}

}  // namespace

std::string strategy_label(const json& row) {
  std::string strategy = row.at("strategy");
  const std::string memory = row.at("memory");
  const auto planner = row.find("planner");
  const bool is_of_another =
      strategy == "copy" && planner != row.end() && planner->is_string() && *planner != "joint";
  if (is_of_another) return planner->get<std::string>() + " (copy)";
  if (memory == "managed" || memory == strategy) return strategy;
  return strategy + " (" + memory + ")";
}

Comparison compare(const json& rows) {
  Comparison comparison{.columns = find_columns(rows), .lines = {}};
  constexpr std::uint64_t kMax = std::numeric_limits<std::uint64_t>::max();
  using Key = std::tuple<std::size_t, std::string, std::uint64_t, std::uint64_t, std::uint64_t>;
  std::map<Key, ComparisonLine> lines;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const json& row = rows[i];
    ComparisonLine line{.series = row.at("series"),
                        .net = row.at("net"),
                        .image_size = row.at("image_size"),
                        .batch = row.at("batch"),
                        .budget = row.at("budget"),
                        .budget_bytes = line_bytes(row, rows),
                        .rows = {},
                        .fastest = {}};
    line.rows.resize(comparison.columns.size());
    const Key key{series_order(line.series), line.net, line.image_size, line.batch,
                  kMax - line.budget_bytes};
    const auto column = std::ranges::find(comparison.columns, strategy_label(row));
    auto& place =
        lines.try_emplace(key, std::move(line))
            .first->second.rows[static_cast<std::size_t>(column - comparison.columns.begin())];
    if (!place) place = i;
  }
  for (auto& [key, line] : lines) {
    line.fastest = find_fastest(line, comparison, rows);
    comparison.lines.push_back(std::move(line));
  }
  return comparison;
}

}  // namespace spillway
