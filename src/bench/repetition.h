#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <stop_token>
#include <vector>

namespace spillway {

namespace prefetch {
class JsonView;
}  // namespace prefetch

/// The unit in which benches report time.
using Seconds = std::chrono::duration<double>;

/// Result of a repeated measurement.
struct TimingSummary {
  Seconds median;  ///< of an even number of runs, the mean of the middle two
  Seconds min;
  Seconds max;
  double deviation;  ///< median absolute deviation over the median
  std::size_t runs;
  bool settled;  ///< the deviation got as small as was asked for
};

/// When a measurement has been repeated often enough.
struct Settling {
  std::size_t min_runs = 5;
  double deviation = 0.03;  ///< median absolute deviation over the median
};

/// The times of the runs of one measurement.
class Samples {
 public:
  explicit Samples(const Settling& settling = {}) : settling_{settling} {}

  void add(Seconds time) { times_.push_back(time); }
  [[nodiscard]] std::size_t size() const { return times_.size(); }
  /// True once there are enough runs, and they deviate little. Complexity: O(runs log runs).
  [[nodiscard]] bool are_settled() const;
  /// Requires: at least one run.
  [[nodiscard]] TimingSummary timing() const;

 private:
  Settling settling_;
  std::vector<Seconds> times_;
};

/// {"median", "min", "max", "deviation", "runs", "settled"}, in seconds.
[[nodiscard]] nlohmann::json to_json(const TimingSummary& timing);

/// Reads a summary that to_json() wrote. Throws: um::Error that names the place of a time that is
/// not above zero, or of an impossible value.
[[nodiscard]] TimingSummary read_timing(const prefetch::JsonView& timing);

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
enum class RepetitionPhase { kWarmUp, kCounted };

/// Runs the thing once and says how long what matters of it took.
using TimedRun = std::function<Seconds(RepetitionPhase)>;
using TellTime = std::function<std::chrono::steady_clock::time_point()>;

/// Runs `once` to warm up, then until its times have settled, which is looked at after each eighth
/// more of runs, or a cap is reached; at least one run counts. Throws: Interrupted before a run
/// when `stop` is requested; what `once` throws.
[[nodiscard]] TimingSummary measure(const TimedRun& once, const Repetition& repetition,
                                    const std::stop_token& stop,
                                    const TellTime& now = std::chrono::steady_clock::now);

}  // namespace spillway
