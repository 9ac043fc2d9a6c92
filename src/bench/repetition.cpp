#include "src/bench/repetition.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "prefetch/files/json.h"
#include "src/run/executor.h"
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

// Whether samples have settled, looked at so seldom that the looking costs little beside the runs.
class SettledCheck {
 public:
  bool operator()(const Samples& samples) {
    if (samples.size() < next_) return false;
    next_ = samples.size() + std::max<std::size_t>(1, samples.size() / 8);
    return samples.are_settled();
  }

 private:
  std::size_t next_ = 0;
};

}  // namespace

bool Samples::are_settled() const { return !times_.empty() && timing().settled; }

TimingSummary Samples::timing() const {
  um::expects(!times_.empty(), "a timing of at least one run");
  std::vector<Seconds> sorted = times_;
  std::ranges::sort(sorted);
  const Seconds median = median_of(sorted);
  const double deviation = relative_deviation(sorted, median);
  return {.median = median,
          .min = sorted.front(),
          .max = sorted.back(),
          .deviation = deviation,
          .runs = sorted.size(),
          .settled = sorted.size() >= settling_.min_runs && deviation <= settling_.deviation};
}

nlohmann::json to_json(const TimingSummary& timing) {
  return {
      {"median", timing.median.count()}, {"min", timing.min.count()}, {"max", timing.max.count()},
      {"deviation", timing.deviation},   {"runs", timing.runs},       {"settled", timing.settled}};
}

TimingSummary read_timing(const prefetch::JsonView& timing) {
  const TimingSummary read{.median = Seconds{timing.at("median").positive_number()},
                           .min = Seconds{timing.at("min").positive_number()},
                           .max = Seconds{timing.at("max").number()},
                           .deviation = timing.at("deviation").number(),
                           .runs = timing.at("runs").integer(),
                           .settled = timing.at("settled").boolean()};
  if (read.min > read.median) throw timing.at("min").error("is more than the median");
  if (read.max < read.median) throw timing.at("max").error("is less than the median");
  if (read.runs == 0) throw timing.at("runs").error("is zero");
  return read;
}

TimingSummary measure(const TimedRun& once, const Repetition& repetition,
                      const std::stop_token& stop, const TellTime& now) {
  um::expects(repetition.max_runs > 0, "a measurement has at least one run");
  const auto begin = now();
  const auto run = [&](RepetitionPhase phase) {
    if (stop.stop_requested()) throw Interrupted{"what was not reached is left out"};
    return once(phase);
  };
  for (std::size_t i = 0; i < repetition.warm_ups; ++i) run(RepetitionPhase::kWarmUp);
  Samples samples{repetition.settling};
  SettledCheck has_settled;
  Seconds taken{0};
  do {
    samples.add(run(RepetitionPhase::kCounted));
    taken = now() - begin;
  } while (samples.size() < repetition.max_runs && taken < repetition.max_time &&
           (taken < repetition.min_time || !has_settled(samples)));
  return samples.timing();
}

}  // namespace spillway
