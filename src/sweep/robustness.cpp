#include "src/sweep/robustness.h"

#include <algorithm>
#include <cstdint>

#include "prefetch/simulate/simulate.h"
#include "prefetch/simulate/timeline.h"

namespace spillway {
namespace {

// Makespan over what the runs themselves take.
double overhead(const prefetch::Timeline& timeline) {
  um::Nanoseconds arithmetic{0};
  for (const prefetch::Interval& run : timeline.runs) arithmetic += run.end - run.begin;
  return um::seconds(timeline.makespan()) / std::max(1e-9, um::seconds(arithmetic));
}

}  // namespace

Robustness measure_robustness(const prefetch::TaskGraph& graph, const prefetch::Plan& plan,
                              const prefetch::Profile& profile, double noise, int draws) {
  const double undisturbed = overhead(prefetch::simulate(plan, profile));
  Robustness robustness;
  double sum = 0;
  for (int draw = 1; draw <= draws; ++draw) {
    const prefetch::Timeline timeline = prefetch::simulate(
        plan, profile, {.noise = noise, .seed = static_cast<std::uint64_t>(draw)});
    sum += overhead(timeline);
    for (const prefetch::MemorySample& sample : prefetch::memory_curve(graph, plan, timeline)) {
      robustness.peak = std::max(robustness.peak, sample.near);
    }
  }
  robustness.loss = sum / draws / undisturbed - 1;
  return robustness;
}

}  // namespace spillway
