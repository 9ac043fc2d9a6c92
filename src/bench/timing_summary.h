#pragma once

#include <chrono>
#include <cstddef>
#include <nlohmann/json_fwd.hpp>
#include <vector>

namespace spillway {

namespace prefetch {
class JsonView;
}  // namespace prefetch

/// What benches count time in.
using Seconds = std::chrono::duration<double>;

/// What a repeated measurement gave.
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

/// What to_json() wrote. Throws: um::Error that names the place of a time that is not above zero,
/// or of what cannot be.
[[nodiscard]] TimingSummary read_timing(const prefetch::JsonView& timing);

}  // namespace spillway
