#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <stop_token>

#include "src/bench/timing_summary.h"

namespace spillway {

/// How often something is run to measure it.
struct Repetition {
  std::size_t warm_ups = 1;  ///< runs before those that count
  Settling settling;
  std::size_t max_runs = 50;  ///< that count; at least one
  /// Before which runs have not settled: some microseconds of short runs look steadier than they
  /// are. Warm-ups included.
  Seconds min_time{0};
  Seconds max_time{2};  ///< after which no further run begins, warm-ups included
};

/// Whether a run's time is counted.
enum class Phase { kWarmUp, kCounted };

/// Runs the thing once and says how long what matters of it took.
using TimedRun = std::function<Seconds(Phase)>;
using TellTime = std::function<std::chrono::steady_clock::time_point()>;

/// Runs `once` to warm up, then until its times have settled, which is looked at after each eighth
/// more of runs, or a cap is reached; at least one run counts. Throws: Interrupted before a run
/// when `stop` is requested; what `once` throws.
[[nodiscard]] TimingSummary measure(const TimedRun& once, const Repetition& repetition,
                                    const std::stop_token& stop,
                                    const TellTime& now = std::chrono::steady_clock::now);

}  // namespace spillway
