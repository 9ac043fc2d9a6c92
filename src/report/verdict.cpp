#include "src/report/verdict.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <span>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "src/bench/bench_file.h"
#include "src/bench/link/link_bench.h"
#include "src/bench/paging/paging_bench.h"
#include "src/bench/train/train_row.h"
#include "src/report/comparison.h"
#include "um/bytes.h"
#include "um/text/wording.h"

namespace spillway {
namespace {

// "a", "a and b", "a, b and c".
std::string joined(const std::vector<std::string>& parts) {
  std::string text;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    if (i > 0) text += i + 1 == parts.size() ? " and " : ", ";
    text += parts[i];
  }
  return text;
}

using Rows = std::span<const TrainRow>;

// Of the resident need: tight enough that planners differ, roomy enough that most have a plan.
constexpr double kTightBudget = 0.4;
constexpr double kGoodPrediction = 0.1;
constexpr std::size_t kMaxNamed = 4;

// Lines of one network at one batch, with other budgets.
using Subject = std::tuple<std::string, std::uint64_t, std::uint64_t>;
using Subjects = std::map<Subject, std::vector<const ComparisonLine*>>;

double share_of(const ComparisonLine& line, Rows rows) {
  for (const auto& index : line.rows) {
    if (!index || !rows[*index].measurement) continue;
    return static_cast<double>(line.key.budget_bytes.count()) /
           static_cast<double>(rows[*index].key.resident_bytes.count());
  }
  return 1;
}

// Strategies of a line by their ratio, as far as it has settled.
std::vector<std::pair<double, std::string>> standings(const ComparisonLine& line,
                                                      const Comparison& table, Rows rows) {
  std::vector<std::pair<double, std::string>> found;
  for (std::size_t i = 0; i < line.rows.size(); ++i) {
    if (!line.rows[i] || table.columns[i] == "resident" || !table.settled[*line.rows[i]]) continue;
    if (const auto ratio = rows[*line.rows[i]].ratio())
      found.emplace_back(*ratio, table.columns[i]);
  }
  std::ranges::sort(found);
  return found;
}

// "resnet18, batch 32, with 40 % of the memory it needs: joint takes 1.04× the resident step, copy
// 1.10× and on-demand 2.30×."
std::string ranking(const ComparisonLine& line, const Comparison& table, Rows rows) {
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
  return fmt::format("{}, batch {}, with {:.0f} % of the memory it needs: {}.", line.key.net,
                     line.key.batch, 100 * share_of(line, rows), joined(parts));
}

// Of the lines that more than one strategy ran.
std::string leader(const std::vector<const ComparisonLine*>& lines, const Comparison& table,
                   Rows rows) {
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
  if (contested < 2 || firsts.empty()) return {};
  const auto max = std::ranges::max_element(firsts, {}, [](const auto& of) { return of.second; });
  const std::size_t tied = ties[max->first];
  const std::string where = max->second == contested
                                ? fmt::format("all {} budgets", contested)
                                : fmt::format("{} of {} budgets", max->second, contested);
  return fmt::format("{} is the fastest for {} at batch {} at {}{}.", max->first,
                     lines.front()->key.net, lines.front()->key.batch, where,
                     tied == 0 ? "" : fmt::format(", {} of them within the spread", tied));
}

void say_budgets(const Comparison& table, Rows rows, std::vector<std::string>& said) {
  Subjects subjects;
  for (const ComparisonLine& line : table.lines) {
    if (line.key.series == TrainSeries::kBatch || standings(line, table, rows).empty()) continue;
    subjects[{line.key.net, line.key.image_size, line.key.batch}].push_back(&line);
  }
  for (const auto& [subject, lines] : subjects) {
    const auto* const tight = *std::ranges::min_element(lines, {}, [&](const ComparisonLine* line) {
      return std::abs(share_of(*line, rows) - kTightBudget);
    });
    said.push_back(ranking(*tight, table, rows));
    if (lines.back()->key.budget_bytes < tight->key.budget_bytes) {
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

void say_batches(Rows rows, std::vector<std::string>& said) {
  std::map<std::pair<std::string, std::uint64_t>, Reach> reaches;
  for (const TrainRow& row : rows) {
    if (row.key.series != TrainSeries::kBatch || !row.measurement) continue;
    Reach& reach = reaches[{row.key.net, row.key.image_size}];
    const std::uint64_t batch = row.key.batch;
    const double rate = row.measurement->step.settled ? row.images_per_second().value_or(0) : 0;
    if (row.key.strategy.is_resident()) {
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
    if (reach.resident_rate == 0 || reach.rate == 0) continue;  // not settled
    said.push_back(fmt::format(
        "{} fits up to batch {} in near memory; at batch {} {} makes {:.3g} images a second, "
        "{:.0f} % of the best that fits.",
        subject.first, reach.resident_batch, reach.batch, reach.strategy, reach.rate,
        100 * reach.rate / reach.resident_rate));
  }
}

void say_predictions(Rows rows, std::vector<std::string>& said) {
  std::size_t count = 0;
  std::size_t good = 0;
  double worst = 0;
  const TrainRow* worst_row = nullptr;
  for (const std::size_t i : distinct_runs(rows)) {
    const auto ratio = rows[i].predicted_over_measured();
    if (!ratio || !rows[i].measurement->step.settled) continue;
    const double off = *ratio - 1;
    ++count;
    if (std::abs(off) <= kGoodPrediction) ++good;
    if (worst_row == nullptr || std::abs(off) > std::abs(worst)) {
      worst = off;
      worst_row = &rows[i];
    }
  }
  if (count == 0) return;
  const std::string furthest = fmt::format(
      "{}{:.0f} % ({}, {}, batch {}, {})", worst < 0 ? "−" : "+", 100 * std::abs(worst),
      strategy_label(*worst_row), worst_row->key.net, worst_row->key.batch, worst_row->key.budget);
  if (count == 1) {
    said.push_back(fmt::format("The only prediction is off by {}.", furthest));
    return;
  }
  const std::string close =
      good == count ? fmt::format("All {} predictions are", count)
                    : fmt::format("{} of {} predictions {}", good, count, good == 1 ? "is" : "are");
  said.push_back(fmt::format("{} within 10 % of the measurement; the furthest is off by {}.", close,
                             furthest));
}

// Where the measure itself is no figure, all that is over it is none.
void say_unsettled(const Comparison& table, Rows rows, std::vector<std::string>& said) {
  std::set<Subject> of_resident;
  std::size_t unsettled = 0;
  std::size_t measured = 0;
  for (const std::size_t i : distinct_runs(rows)) {
    const TrainRow& row = rows[i];
    if (!row.measurement) continue;
    ++measured;
    if (!table.settled[i]) ++unsettled;
    const TimingSummary& step = row.measurement->step;
    if (!row.key.strategy.is_resident() || step.settled) continue;
    if (!of_resident.insert({row.key.net, row.key.image_size, row.key.batch}).second) continue;
    said.push_back(fmt::format(
        "{}, batch {}: the resident step has not settled (±{:.0f} % in {}), so nothing is compared "
        "with it; measure again while the machine does nothing else, with more --rounds.",
        row.key.net, row.key.batch, 100 * step.deviation, um::count_of(step.runs, "run")));
  }
  if (unsettled == 0 || !of_resident.empty()) return;
  said.push_back(fmt::format("{} of {} figures {} not settled (~), and {} not compared.", unsettled,
                             measured, unsettled == 1 ? "has" : "have",
                             unsettled == 1 ? "is" : "are"));
}

void say_failures(Rows rows, std::vector<std::string>& said) {
  const std::vector<std::size_t> runs = distinct_runs(rows);
  const auto failed =
      std::ranges::count_if(runs, [&](std::size_t i) { return !rows[i].measurement; });
  if (failed == 0) return;
  said.push_back(
      fmt::format("{} of {} cases could not be run; the table says why.", failed, runs.size()));
}

// Returns a few sentences about rows of `bench train` or `bench planners`, the most important
// first. Rows that have not settled are not compared.
std::vector<std::string> training_verdict(std::span<const TrainRow> rows) {
  std::vector<std::string> said;
  const Comparison table = compare(rows);
  say_budgets(table, rows, said);
  say_batches(rows, said);
  say_unsettled(table, rows, said);
  say_predictions(rows, said);
  say_failures(rows, said);
  return said;
}

// The largest size that every way of a direction has: small ones fit in the processor's cache.
um::Bytes common_size(std::span<const LinkRow> rows, Direction direction) {
  std::map<std::string, std::set<um::Bytes>> sizes;  // by way
  for (const LinkRow& row : rows) {
    if (row.direction == direction) sizes[to_string(row.way)].insert(row.size);
  }
  um::Bytes largest;
  if (sizes.empty()) return largest;
  for (const um::Bytes size : sizes.begin()->second) {
    const auto has = [&](const auto& way) { return way.second.contains(size); };
    if (std::ranges::all_of(sizes, has)) largest = size;
  }
  return largest;
}

void say_link(std::span<const LinkRow> rows, std::vector<std::string>& said) {
  for (const auto& [direction, name] : {std::pair{Direction::kIn, "From far to near"},
                                        std::pair{Direction::kOut, "From near to far"}}) {
    const um::Bytes size = common_size(rows, direction);
    std::vector<std::pair<double, std::string>> ways;
    for (const LinkRow& row : rows) {
      if (row.direction != direction || row.size != size) continue;
      ways.emplace_back(row.bytes_per_second(), to_string(row.way));
    }
    if (ways.empty()) continue;
    std::ranges::sort(ways, std::greater{});
    std::vector<std::string> parts;
    parts.reserve(ways.size());
    for (auto& [rate, way] : ways) {
      std::ranges::replace(way, '_', ' ');
      parts.push_back(fmt::format("{} {:.3g} GB/s", way, rate / 1e9));
    }
    said.push_back(fmt::format("{}, {} at a time: {}.", name, um::to_string(size), joined(parts)));
  }
}

void say_paging(std::span<const PagingRow> rows, std::vector<std::string>& said) {
  double nearest = 0;  // to twice the near memory, above it
  for (const PagingRow& row : rows) {
    const double times = row.near_times;
    if (times > 1 && (nearest == 0 || std::abs(times - 2) < std::abs(nearest - 2))) nearest = times;
  }
  std::map<std::string, std::pair<double, double>> ranges;  // of ratios, by way
  for (const PagingRow& row : rows) {
    if (row.near_times != nearest) continue;
    const double ratio = row.ratio();
    const auto at = ranges.try_emplace(to_string(row.way), ratio, ratio).first;
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

std::vector<std::string> verdict(const prefetch::JsonView& bench) {
  std::vector<std::string> said;
  const std::string kind = bench.at("bench").string();
  if (kind == "link") {
    say_link(read_rows(bench, read_link_row), said);
  } else if (kind == "paging") {
    say_paging(read_rows(bench, read_paging_row), said);
  } else {
    return training_verdict(read_rows(bench, read_train_row));
  }
  return said;
}

}  // namespace spillway
