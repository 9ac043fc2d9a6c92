#include "src/report/verdict.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <set>
#include <span>
#include <utility>

#include "src/bench/bench_file.h"
#include "src/bench/link/link_bench.h"
#include "src/bench/paging/paging_bench.h"
#include "src/report/joined.h"
#include "src/report/training_verdict.h"
#include "um/bytes.h"

namespace spillway {
namespace {

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
