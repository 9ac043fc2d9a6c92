#include "prefetch/simulate/run_times.h"

#include <random>

namespace spillway::prefetch {

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
