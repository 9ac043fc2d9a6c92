#pragma once

#include <cstdint>
#include <vector>

#include "prefetch/plan.h"
#include "prefetch/profile.h"

namespace spillway::prefetch {

/// What may vary in a simulation.
struct SimulateOptions {
  double noise =
      0;  ///< each run's time is multiplied by a number drawn from [1 - noise, 1 + noise]
  std::uint64_t seed = 0;
};

/// How long each run of `plan` computes, in nanoseconds, under the options' noise.
[[nodiscard]] std::vector<double> run_times(const Plan& plan, const Profile& profile,
                                            const SimulateOptions& options);

}  // namespace spillway::prefetch
