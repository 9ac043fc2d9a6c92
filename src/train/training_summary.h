#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "src/train/checkpoint.h"
#include "src/train/session.h"
#include "src/train/train.h"
#include "um/bytes.h"
#include "um/counters.h"
#include "um/nanoseconds.h"

namespace spillway {

/// What a training came to.
struct TrainingSummary {
  std::uint64_t steps = 0;  ///< done, counted from the very beginning
  /// Of the steps run now; losses are 0 where there are none.
  std::uint64_t steps_run = 0;
  float first_loss = 0;
  float last_loss = 0;
  um::Counters counters;  ///< their sum
  /// In which no kernel ran: the sum over those steps whose times were taken, and how many these
  /// are.
  um::Nanoseconds stalled{0};
  std::uint64_t timed_steps = 0;
  um::Nanoseconds data_wait{0};  ///< for batches to be loaded, the sum over the steps
  std::size_t broken_files = 0;  ///< of the data set, passed over
  /// The last one of those steps; nothing where there was none.
  std::optional<Evaluation> evaluation;

  um::Nanoseconds median_step{0};  ///< without the first, which warms up, where there are others
  /// By the plan; nothing where no plan depends on times, and so nothing was measured.
  std::optional<um::Nanoseconds> predicted_step;
  um::Bytes budget;
  um::Bytes near_peak;         ///< the most near memory in use at any time
  std::string weights_sha256;  ///< of all weights, in layer order
};

/// `last` as what a training reports.
[[nodiscard]] Evaluation evaluation_of(const LastEvaluation& last);

/// Adds up the steps of a training.
class SummaryOfSteps {
 public:
  explicit SummaryOfSteps(std::uint64_t steps_before) { summary_.steps = steps_before; }
  void add(std::uint64_t step, const StepReport& report);
  void add(const Evaluation& evaluation) { summary_.evaluation = evaluation; }
  [[nodiscard]] TrainingSummary summary() const;

 private:
  TrainingSummary summary_;
  std::vector<um::Nanoseconds> durations_;
};

}  // namespace spillway
