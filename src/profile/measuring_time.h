#pragma once

#include <chrono>

namespace spillway {

/// How long to measure what `usual` is long enough for: as long, times the factor that the
/// environment's SPILLWAY_MEASURING_TIME may have (over 0, at most 1). A short measurement makes
/// plans that may be slower, and no wrong ones: tests, which make hundreds of trainings, take
/// little. Throws: um::Error when the variable is no such factor.
[[nodiscard]] std::chrono::nanoseconds measuring_time(std::chrono::nanoseconds usual);

}  // namespace spillway
