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
  /// Called after each cell, by one thread at a time; may be empty.
  std::function<void(const SweepProgress&)> on_progress;
};

/// Plans each cell with each strategy, verifies, simulates. Cells are evaluated in parallel; the
/// points come cell by cell, strategy by strategy, and but for their planning times do not depend
/// on the number of threads. When `stop` is requested, no further cell begins, and those that did
/// not begin are left out.
[[nodiscard]] std::vector<Point> sweep(std::span<const SweepPoint> sweep_points,
                                       std::span<const Strategy> strategies,
                                       const SweepOptions& options, const std::stop_token& stop);

/// Replaces the planning times of the slowest among `points`, one for each of `cells` and made with
/// `strategy`, by times with nothing beside them, until the slowest of all is such a time; looks
/// only at steps of at most `tasks` tasks, and plans at most `most` times.
void time_slowest_alone(std::span<const SweepPoint> sweep_points, const Strategy& strategy,
                        std::span<Point> points, std::size_t tasks, std::size_t max);

/// The points of one cell, in the order of the strategies.
[[nodiscard]] std::vector<Point> evaluate(const SweepPoint& sweep_point,
                                          std::span<const Strategy> strategies,
                                          const SweepOptions& options);

}  // namespace spillway
