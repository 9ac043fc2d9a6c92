#pragma once

#include <chrono>
#include <span>

#include "src/bench/timing_summary.h"

namespace spillway {

/// A round of a trial, from the making of its session to its last step.
struct Round {
  std::chrono::steady_clock::time_point begin;
  std::chrono::steady_clock::time_point end;
  Seconds step;  ///< the median of those that count
};

/// What a resident step took about the time of `rounds`: the median over the three of `resident`
/// nearest to each of them, by the time between the two, or as many as there are; of all where
/// there are no `rounds`. Requires: some `resident`.
[[nodiscard]] Seconds step_about(std::span<const Round> rounds, std::span<const Round> resident);

}  // namespace spillway
