#include "src/report/verdict.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <tuple>
#include <utility>

#include "src/report/comparison.h"
#include "src/report/distinct_runs.h"
#include "um/bytes.h"

namespace spillway {
namespace {

using nlohmann::json;

constexpr double kTightBudget = 0.4;  // the part of the resident need that issue 7 asks about
constexpr double kGoodPrediction = 0.1;
constexpr std::size_t kMaxNamed = 4;

bool has_figure(const json& row) { return row.contains("seconds"); }

bool has_ratio(const json& row) {
  return has_figure(row) && row.contains("ratio") && !row.at("ratio").is_null();
}

std::string joined(const std::vector<std::string>& parts) {
  std::string text;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    if (i > 0) text += i + 1 == parts.size() ? " and " : ", ";
    text += parts[i];
  }
  return text;
}

// Lines of one network at one batch, with other budgets.
using Subject = std::tuple<std::string, std::uint64_t, std::uint64_t>;
using Subjects = std::map<Subject, std::vector<const ComparisonLine*>>;

double share_of(const ComparisonLine& line, const json& rows) {
  for (const auto& index : line.rows) {
    if (!index || !has_figure(rows[*index])) continue;
    return static_cast<double>(line.budget_bytes) / rows[*index].at("resident_bytes").get<double>();
  }
  return 1;
}

// Strategies of a line by their ratio.
std::vector<std::pair<double, std::string>> standings(const ComparisonLine& line,
                                                      const Comparison& table, const json& rows) {
  std::vector<std::pair<double, std::string>> found;
  for (std::size_t i = 0; i < line.rows.size(); ++i) {
    if (!line.rows[i] || table.columns[i] == "resident" || !has_ratio(rows[*line.rows[i]]))
      continue;
    found.emplace_back(rows[*line.rows[i]].at("ratio").get<double>(), table.columns[i]);
  }
  std::ranges::sort(found);
  return found;
}

// "resnet18, batch 32, with 40 % of the memory it needs: joint takes 1.04× the resident step, copy
// 1.10× and on-demand 2.30×."
std::string ranking(const ComparisonLine& line, const Comparison& table, const json& rows) {
  const auto found = standings(line, table, rows);
  std::vector<std::string> parts;
  for (std::size_t i = 0; i < std::min(kMaxNamed, found.size()); ++i) {
    parts.push_back(fmt::format("{}{} {:.2f}×{}", found[i].second, i == 0 ? " takes" : "",
                                found[i].first, i == 0 ? " the resident step" : ""));
  }
  if (found.size() > kMaxNamed) {
    parts.push_back(
        fmt::format("{} more up to {:.2f}×", found.size() - kMaxNamed, found.back().first));
  }
  return fmt::format("{}, batch {}, with {:.0f} % of the memory it needs: {}.", line.net,
                     line.batch, 100 * share_of(line, rows), joined(parts));
}

// Of the lines that more than one strategy ran.
std::string leader(const std::vector<const ComparisonLine*>& lines, const Comparison& table,
                   const json& rows) {
  std::map<std::string, std::size_t> firsts;
  std::map<std::string, std::size_t> ties;
  std::size_t contested = 0;
  for (const ComparisonLine* line : lines) {
    if (standings(*line, table, rows).size() < 2) continue;
    ++contested;
    for (const std::size_t column : line->fastest) {
      ++firsts[table.columns[column]];
      if (line->fastest.size() > 1) ++ties[table.columns[column]];
    }
  }
  if (contested < 2) return {};
  const auto max = std::ranges::max_element(firsts, {}, [](const auto& of) { return of.second; });
  const std::size_t tied = ties[max->first];
  const std::string where = max->second == contested
                                ? fmt::format("all {} budgets", contested)
                                : fmt::format("{} of {} budgets", max->second, contested);
  return fmt::format("{} is the fastest for {} at batch {} at {}{}.", max->first,
                     lines.front()->net, lines.front()->batch, where,
                     tied == 0 ? "" : fmt::format(", {} of them within the spread", tied));
}

void say_budgets(const Comparison& table, const json& rows, std::vector<std::string>& said) {
  Subjects subjects;
  for (const ComparisonLine& line : table.lines) {
    if (line.series == "batch" || standings(line, table, rows).empty()) continue;
    subjects[{line.net, line.image_size, line.batch}].push_back(&line);
  }
  for (const auto& [subject, lines] : subjects) {
    const auto* const tight = *std::ranges::min_element(lines, {}, [&](const ComparisonLine* line) {
      return std::abs(share_of(*line, rows) - kTightBudget);
    });
    said.push_back(ranking(*tight, table, rows));
    if (lines.back()->budget_bytes < tight->budget_bytes) {
      said.push_back(ranking(*lines.back(), table, rows));
    }
    if (std::string sentence = leader(lines, table, rows); !sentence.empty()) {
      said.push_back(std::move(sentence));
    }
  }
}

// Of a network's series of batches: how far each strategy came, and how fast.
struct Reach {
  std::uint64_t resident_batch = 0;
  double resident_rate = 0;  // images a second, the best
  std::uint64_t batch = 0;   // the largest that anything else ran
  double rate = 0;
  std::string strategy;
};

void say_batches(const json& rows, std::vector<std::string>& said) {
  std::map<std::pair<std::string, std::uint64_t>, Reach> reaches;
  for (const json& row : rows) {
    if (row.at("series") != "batch" || !has_figure(row)) continue;
    Reach& reach = reaches[{row.at("net"), row.at("image_size")}];
    const std::uint64_t batch = row.at("batch");
    const double rate = row.at("images_per_second");
    if (strategy_label(row) == "resident") {
      reach.resident_batch = std::max(reach.resident_batch, batch);
      reach.resident_rate = std::max(reach.resident_rate, rate);
    } else if (std::pair{batch, rate} > std::pair{reach.batch, reach.rate}) {
      reach.batch = batch;
      reach.rate = rate;
      reach.strategy = strategy_label(row);
    }
  }
  for (const auto& [subject, reach] : reaches) {
    if (reach.resident_batch == 0 || reach.batch <= reach.resident_batch) continue;
    said.push_back(fmt::format(
        "{} fits up to batch {} in near memory; at batch {} {} makes {:.3g} images a second, "
        "{:.0f} % of the best that fits.",
        subject.first, reach.resident_batch, reach.batch, reach.strategy, reach.rate,
        100 * reach.rate / reach.resident_rate));
  }
}

void say_predictions(const json& rows, std::vector<std::string>& said) {
  std::size_t count = 0;
  std::size_t good = 0;
  double worst = 0;
  const json* worst_row = nullptr;
  for (const json& row : rows) {
    if (!has_figure(row) || !row.contains("predicted_seconds") ||
        row.at("predicted_seconds").is_null()) {
      continue;
    }
    const double measured = row.at("seconds").at("median");
    const double off = row.at("predicted_seconds").get<double>() / measured - 1;
    ++count;
    if (std::abs(off) <= kGoodPrediction) ++good;
    if (worst_row == nullptr || std::abs(off) > std::abs(worst)) {
      worst = off;
      worst_row = &row;
    }
  }
  if (count == 0) return;
  const std::string furthest = fmt::format(
      "{}{:.0f} % ({}, {}, batch {}, {})", worst < 0 ? "−" : "+", 100 * std::abs(worst),
      strategy_label(*worst_row), worst_row->at("net").get<std::string>(),
      worst_row->at("batch").get<std::uint64_t>(), worst_row->at("budget").get<std::string>());
  if (count == 1) {
    said.push_back(fmt::format("The only prediction is off by {}.", furthest));
    return;
  }
  said.push_back(good == count
                     ? fmt::format("All {} predictions are within 10 % of the measurement; the "
                                   "furthest is off by {}.",
                                   count, furthest)
                     : fmt::format("{} of {} predictions are within 10 % of the measurement; the "
                                   "furthest is off by {}.",
                                   good, count, furthest));
}

void say_failures(const json& rows, std::vector<std::string>& said) {
  const auto failed = std::ranges::count_if(rows, [](const json& row) { return !has_figure(row); });
  if (failed == 0) return;
  said.push_back(
      fmt::format("{} of {} cases could not be run; the table says why.", failed, rows.size()));
}

// The largest size that every way of a direction has: small ones fit in the processor's cache.
std::uint64_t common_size(const json& rows, const std::string& direction) {
  std::map<std::string, std::set<std::uint64_t>> sizes;  // by way
  for (const json& row : rows) {
    if (row.at("direction") != direction) continue;
    sizes[row.at("way")].insert(row.at("bytes").get<std::uint64_t>());
  }
  std::uint64_t largest = 0;
  if (sizes.empty()) return largest;
  for (const std::uint64_t size : sizes.begin()->second) {
    const auto has = [&](const auto& way) { return way.second.contains(size); };
    if (std::ranges::all_of(sizes, has)) largest = size;
  }
  return largest;
}

void say_link(const json& rows, std::vector<std::string>& said) {
  for (const auto& [direction, name] :
       {std::pair{"in", "From far to near"}, std::pair{"out", "From near to far"}}) {
    const std::uint64_t size = common_size(rows, direction);
    std::vector<std::pair<double, std::string>> ways;
    for (const json& row : rows) {
      if (row.at("direction") != direction || row.at("bytes") != size) continue;
      ways.emplace_back(row.at("bytes_per_second").get<double>(), row.at("way"));
    }
    if (ways.empty()) continue;
    std::ranges::sort(ways, std::greater{});
    std::vector<std::string> parts;
    parts.reserve(ways.size());
    for (auto& [rate, way] : ways) {
      std::ranges::replace(way, '_', ' ');
      parts.push_back(fmt::format("{} {:.3g} GB/s", way, rate / 1e9));
    }
    said.push_back(
        fmt::format("{}, {} at a time: {}.", name, um::to_string(um::Bytes{size}), joined(parts)));
  }
}

void say_paging(const json& rows, std::vector<std::string>& said) {
  double nearest = 0;  // to twice the near memory, above it
  for (const json& row : rows) {
    const double times = row.at("near_times");
    if (times > 1 && (nearest == 0 || std::abs(times - 2) < std::abs(nearest - 2))) nearest = times;
  }
  std::map<std::string, std::pair<double, double>> ranges;  // of ratios, by way
  for (const json& row : rows) {
    if (row.at("near_times") != nearest) continue;
    const double ratio = row.at("ratio");
    const auto at = ranges.try_emplace(row.at("way"), ratio, ratio).first;
    at->second.first = std::min(at->second.first, ratio);
    at->second.second = std::max(at->second.second, ratio);
  }
  if (ranges.empty()) return;
  std::vector<std::string> parts;
  parts.reserve(ranges.size());
  for (const auto& [way, range] : ranges) {
    parts.push_back(range.first == range.second
                        ? fmt::format("{} {:.3g}×", way, range.first)
                        : fmt::format("{} {:.3g} to {:.3g}×", way, range.first, range.second));
  }
  said.push_back(
      fmt::format("Touching {:g} times as much as near memory holds, over touching plain memory, "
                  "depending on the pattern: {}.",
                  nearest, joined(parts)));
}

}  // namespace

std::vector<std::string> verdict(const json& bench) {
  std::vector<std::string> said;
  const json& rows = bench.at("rows");
  const std::string kind = bench.at("bench");
  if (kind == "link") {
    say_link(rows, said);
  } else if (kind == "paging") {
    say_paging(rows, said);
  } else {
    say_budgets(compare(rows), rows, said);
    say_batches(rows, said);
    json runs = json::array();
    for (const std::size_t i : distinct_runs(rows)) runs.push_back(rows[i]);
    say_predictions(runs, said);
    say_failures(runs, said);
  }
  return said;
}

}  // namespace spillway
