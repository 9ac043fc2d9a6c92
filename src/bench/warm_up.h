#pragma once

#include <cstddef>

#include "src/bench/timing_summary.h"

namespace spillway {

/// Steps of a warm-up: at least, and at most.
inline constexpr std::size_t kMinWarmUps = 2;
inline constexpr std::size_t kMaxWarmUps = 5;

/// Whether a warm-up of `steps` steps, of which the last two took `before` and `last`, has gone on
/// long enough: a step was hardly shorter, not by 2 %, than the one before it, or there were the
/// most.
[[nodiscard]] bool is_warm(std::size_t steps, Seconds before, Seconds last);

}  // namespace spillway
