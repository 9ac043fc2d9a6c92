#pragma once

#include <cstddef>
#include <functional>
#include <span>
#include <stop_token>
#include <string>
#include <vector>

#include "src/sweep/point.h"
#include "src/sweep/scenario.h"

namespace spillway {

/// How far a sweep is.
struct SweepProgress {
  double done = 0;     ///< part of the work, from 0 to 1
  std::string latest;  ///< what was finished last, for people
};

struct SweepOptions {
  int threads = 0;            ///< 0: one for each processor
  bool whole_blocks = false;  ///< plans for explicit copies
  double noise = 0;  ///< above 0: also execute each plan with so much noise, `noise_draws` times
  int noise_draws = 5;
  bool with_memory = false;  ///< keep how much near memory each run of a plan meets
  /// Called after each point of the sweep, by one thread at a time; may be empty.
  std::function<void(const SweepProgress&)> on_progress;
};

/// Plans each sweep point with each strategy, verifies and simulates the plans. Sweep points are
/// evaluated in parallel. Results come by sweep point, then by strategy, and do not depend on the
/// number of threads, planning times aside. When `stop` is requested, no further sweep point
/// begins, and those that did not begin are left out.
[[nodiscard]] std::vector<Point> sweep(std::span<const SweepPoint> sweep_points,
                                       std::span<const Strategy> strategies,
                                       const SweepOptions& options, const std::stop_token& stop);

/// The points of one sweep point, in the order of the strategies.
[[nodiscard]] std::vector<Point> evaluate(const SweepPoint& sweep_point,
                                          std::span<const Strategy> strategies,
                                          const SweepOptions& options);

}  // namespace spillway
