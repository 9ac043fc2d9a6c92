#include "src/profile/exchange_load.h"

#include <algorithm>
#include <chrono>
#include <optional>
#include <vector>

#include "src/profile/interconnect_profiler.h"
#include "src/profile/measuring_time.h"
#include "src/profile/repeated_launch.h"
#include "src/ranks/gather_values.h"

namespace spillway {

double compute_speed_while_exchanging(const RankMemory& between, const ExchangeLoad& load) {
  constexpr std::chrono::milliseconds kDuration{400};
  constexpr double kSlowest = 0.05;
  const std::optional<LoadTask> task = find_load(load.step, load.profile, load.limit);
  // What not all ranks can do, none does.
  if (any_rank(between.ranks, !task)) return 1;
  RepeatedLaunch launches{load.step, *task, *load.context.backend, load.context.device->memory(),
                          *load.context.compute};
  repeat_all_reduces(between, measuring_time(kDuration));
  const double own = std::clamp(launches.stop().value_or(1), kSlowest, 1.0);
  const std::vector<double> speeds = gather_values(between.ranks, own);
  return *std::ranges::min_element(speeds);
}

}  // namespace spillway
