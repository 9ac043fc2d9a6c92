#include "prefetch/simulate/timeline.h"

#include <algorithm>
#include <cstdint>
#include <random>

#include "prefetch/simulate/near_use.h"

namespace spillway::prefetch {

ExchangeShare exchange_share(const Timeline& timeline) {
  ExchangeShare share;
  for (const Interval& exchange : timeline.exchanges) {
    share.exchanging += exchange.end - exchange.begin;
    for (const Interval& run : timeline.runs) {
      const um::Nanoseconds both =
          std::min(run.end, exchange.end) - std::max(run.begin, exchange.begin);
      share.beside_runs += std::max(both, um::Nanoseconds{0});
    }
  }
  return share;
}

std::vector<MemorySample> memory_curve(const TaskGraph& graph, const Plan& plan,
                                       const Timeline& timeline) {
  std::vector<MemorySample> curve;
  std::int64_t near = 0;
  for (const NearChange& change : near_changes(graph, plan, timeline)) {
    near += change.bytes;
    if (!curve.empty() && curve.back().time == change.time) curve.pop_back();
    curve.push_back(
        {change.time, um::Bytes{static_cast<std::uint64_t>(std::max<std::int64_t>(0, near))}});
  }
  return curve;
}

std::vector<double> run_times(const Plan& plan, const Profile& profile,
                              const SimulateOptions& options) {
  std::vector<double> times;
  times.reserve(plan.runs.size());
  std::mt19937_64 random{options.seed};
  for (const TaskRun& run : plan.runs) {
    const double draw = static_cast<double>(random() >> 11U) * 0x1p-53;  // uniform in [0, 1)
    times.push_back(static_cast<double>(profile(run).count()) *
                    (1 + options.noise * (2 * draw - 1)));
  }
  return times;
}

}  // namespace spillway::prefetch
