#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>

#include "nets/network.h"
#include "src/cli/terminal/progress_line.h"
#include "src/cli/train/json_lines.h"
#include "src/train/best_evaluation.h"
#include "src/train/session.h"
#include "src/train/train.h"
#include "src/train/training_summary.h"
#include "um/bytes.h"
#include "um/nanoseconds.h"

namespace spillway::cli {

/// What a step works on: so many images, or texts of so many tokens each.
struct StepSamples {
  std::size_t batch = 0;
  std::size_t tokens_each = 0;  ///< 0: images
};

/// Those of a step of `network`.
[[nodiscard]] StepSamples samples_of_step(const nets::Network& network, std::size_t batch);

/// Returns what an evaluation came to, as the summary of train --json has it.
[[nodiscard]] nlohmann::json test_figures(const Evaluation& evaluation, bool is_of_text);

/// The steps of a training: those done before, and the last one.
struct StepRange {
  std::uint64_t before = 0;
  std::uint64_t last = 0;
};

/// Tells the user how a training goes: a progress line on standard error, a JSON line a step, and
/// what it all came to at the end.
class TrainingReport {
 public:
  /// Of steps within `budget`. Throws: um::Error when `json_path` cannot be written.
  TrainingReport(const std::string& json_path, const StepSamples& samples, const StepRange& steps,
                 um::Bytes budget);

  void step(std::uint64_t step, std::uint64_t epoch, const StepReport& report);
  void evaluation(std::uint64_t step, std::uint64_t epoch, const Evaluation& evaluation);

  void early_stop(std::uint64_t step, const BestEvaluation& best);

  /// On a line of its own.
  void warn(const std::string& sentence);

  /// Adds what the steps came to, to `line`, and writes it as the last one. Throws: um::Error.
  void finish(nlohmann::json line, const TrainingSummary& summary);
  /// Tells the user what the steps came to.
  void print(const TrainingSummary& summary);

 private:
  [[nodiscard]] double samples_per_second(um::Nanoseconds step) const;
  // Of the steps after `step`, as fast as those before.
  [[nodiscard]] std::string time_left(std::uint64_t step) const;
  [[nodiscard]] std::string throughput(um::Nanoseconds step) const;
  [[nodiscard]] bool is_of_text() const { return samples_.tokens_each > 0; }

  JsonLines json_;
  ProgressLine progress_;
  StepSamples samples_;
  StepRange steps_;
  std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
  um::Bytes budget_;
};

}  // namespace spillway::cli
