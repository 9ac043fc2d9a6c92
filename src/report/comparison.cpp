#include "src/report/comparison.h"

#include <algorithm>
#include <array>
#include <limits>
#include <map>
#include <set>
#include <string_view>
#include <tuple>
#include <utility>

namespace spillway {
namespace {

// The best known first, then the others by name.
std::pair<std::size_t, std::string> column_order(const std::string& label) {
  constexpr std::array<std::string_view, 5> kFirst{"resident", "joint", "copy", "capacity",
                                                   "on-demand"};
  const auto* const found = std::ranges::find(kFirst, label);
  return {static_cast<std::size_t>(found - kFirst.begin()), label};
}

std::size_t series_order(TrainSeries series) {
  constexpr std::array kSeries{TrainSeries::kBudget, TrainSeries::kBatch, TrainSeries::kPlanner};
  return static_cast<std::size_t>(std::ranges::find(kSeries, series) - kSeries.begin());
}

std::vector<std::string> find_columns(std::span<const TrainRow> rows) {
  std::vector<std::string> columns;
  for (const TrainRow& row : rows) {
    const std::string label = strategy_label(row);
    if (std::ranges::find(columns, label) == columns.end()) columns.push_back(label);
  }
  std::ranges::sort(columns, {}, column_order);
  return columns;
}

std::vector<std::size_t> find_fastest(const ComparisonLine& line, std::span<const TrainRow> rows,
                                      const std::vector<bool>& settled) {
  std::vector<TrainRow> rivals;
  std::vector<bool> rivals_settled;
  std::vector<std::size_t> columns;
  for (std::size_t i = 0; i < line.rows.size(); ++i) {
    if (!line.rows[i]) continue;
    rivals.push_back(rows[*line.rows[i]]);
    rivals_settled.push_back(settled[*line.rows[i]]);
    rivals.back().key.budget = line.key.budget;  // one line's budgets may have several names
    columns.push_back(i);
  }
  // Where one has no ratio, medians decide.
  if (!std::ranges::all_of(rivals,
                           [](const TrainRow& row) { return !row.measurement || row.ratio(); })) {
    for (TrainRow& row : rivals) row.resident.reset();
  }
  const std::vector<bool> wins = find_winners(rivals, rivals_settled);
  std::vector<std::size_t> fastest;
  for (std::size_t i = 0; i < columns.size(); ++i) {
    if (wins[i]) fastest.push_back(columns[i]);
  }
  return fastest;
}

// The bytes of the line that `row` is on: its budget's. What the resident run needed differs a
// little from "100%" of what was reckoned before, by which the others on its line are named.
um::Bytes line_bytes(const TrainRow& row, std::span<const TrainRow> rows) {
  if (!row.key.strategy.is_resident()) return row.key.budget_bytes;
  const auto found = std::ranges::find_if(rows, [&](const TrainRow& other) {
    return !other.key.strategy.is_resident() && other.key.competes_with(row.key);
  });
  return (found == rows.end() ? row : *found).key.budget_bytes;
}

}  // namespace

std::string strategy_label(const TrainRow& row) {
  const auto& [name, memory, planner, file] = row.key.strategy;
  if (name == "copy" && planner != nullptr && planner->name() != "joint") {
    return std::string{planner->name()} + " (copy)";
  }
  if (memory == MemoryMode::kManaged || to_string(memory) == name || !file.empty()) return name;
  return name + " (" + std::string{to_string(memory)} + ")";
}

Comparison compare(std::span<const TrainRow> rows) {
  Comparison comparison{.columns = find_columns(rows), .lines = {}, .settled = find_settled(rows)};
  constexpr std::uint64_t kMax = std::numeric_limits<std::uint64_t>::max();
  using Key = std::tuple<std::size_t, std::string, std::size_t, std::size_t, std::uint64_t>;
  std::map<Key, ComparisonLine> lines;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    ComparisonLine line{.key = rows[i].key, .rows = {}, .fastest = {}};
    line.key.budget_bytes = line_bytes(rows[i], rows);
    line.rows.resize(comparison.columns.size());
    const Key key{series_order(line.key.series), line.key.net, line.key.image_size, line.key.batch,
                  kMax - line.key.budget_bytes.count()};
    const auto column = std::ranges::find(comparison.columns, strategy_label(rows[i]));
    auto& place =
        lines.try_emplace(key, std::move(line))
            .first->second.rows[static_cast<std::size_t>(column - comparison.columns.begin())];
    if (!place) place = i;
  }
  for (auto& [key, line] : lines) {
    line.fastest = find_fastest(line, rows, comparison.settled);
    comparison.lines.push_back(std::move(line));
  }
  return comparison;
}

std::vector<std::size_t> distinct_runs(std::span<const TrainRow> rows) {
  using Run =
      std::tuple<std::string, std::size_t, std::size_t, std::string, um::Bytes, std::string>;
  std::vector<std::size_t> distinct;
  std::set<Run> seen;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const TrainRowKey& key = rows[i].key;
    const um::Bytes budget = key.strategy.is_resident() ? um::Bytes{} : key.budget_bytes;
    if (seen.insert({key.net, key.image_size, key.batch, strategy_label(rows[i]), budget,
                     rows[i].failure})
            .second) {
      distinct.push_back(i);
    }
  }
  return distinct;
}

}  // namespace spillway
