#include "src/bench/figure.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "um/error.h"

namespace spillway {
namespace {

// Requires: sorted, at least one.
Seconds median_of(const std::vector<Seconds>& sorted) {
  const std::size_t middle = sorted.size() / 2;
  return sorted.size() % 2 == 1 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2;
}

double relative_deviation(const std::vector<Seconds>& times, Seconds median) {
  if (median <= Seconds{0}) return 0;
  std::vector<Seconds> distances;
  distances.reserve(times.size());
  for (const Seconds time : times) distances.push_back(std::chrono::abs(time - median));
  std::ranges::sort(distances);
  return median_of(distances) / median;
}

}  // namespace

bool Samples::are_settled() const { return !times_.empty() && figure().settled; }

Figure Samples::figure() const {
  um::expects(!times_.empty(), "a figure of at least one run");
  std::vector<Seconds> sorted = times_;
  std::ranges::sort(sorted);
  const Seconds median = median_of(sorted);
  const double deviation = relative_deviation(sorted, median);
  return {.median = median,
          .least = sorted.front(),
          .most = sorted.back(),
          .deviation = deviation,
          .runs = sorted.size(),
          .settled = sorted.size() >= settling_.least_runs && deviation <= settling_.deviation};
}

nlohmann::json to_json(const Figure& figure) {
  return {{"median", figure.median.count()},
          {"least", figure.least.count()},
          {"most", figure.most.count()},
          {"deviation", figure.deviation},
          {"runs", figure.runs},
          {"settled", figure.settled}};
}

}  // namespace spillway
