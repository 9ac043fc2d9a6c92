#include "src/bench/warm_up.h"

namespace spillway {

bool is_warm(std::size_t steps, Seconds before, Seconds last) {
  constexpr double kHardlyShorter = 0.98;
  if (steps < kMinWarmUps) return false;
  return steps >= kMaxWarmUps || last >= kHardlyShorter * before;
}

}  // namespace spillway
