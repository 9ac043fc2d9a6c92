#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "src/cli/terminal/progress_line.h"
#include "src/cli/train/json_lines.h"
#include "src/train/session.h"
#include "src/train/train.h"
#include "um/bytes.h"
#include "um/counters.h"

namespace spillway::cli {

/// Tells the user how a training goes: a progress line on standard error, a JSON line a step, and
/// what it all came to at the end.
class TrainingReport {
 public:
  /// `batch` images a step within `budget`. Throws: um::Error when `json_path` cannot be written.
  TrainingReport(const std::string& json_path, std::size_t batch, um::Bytes budget);

  void step(std::uint64_t step, std::uint64_t epoch, const StepReport& report);
  void evaluation(std::uint64_t step, std::uint64_t epoch, const Evaluation& evaluation);

  /// Median of the steps so far, without the first, which warms up, where there are others.
  [[nodiscard]] um::Nanoseconds median_step() const;

  /// Adds what the steps came to, to `summary`, and writes it as the last line. `predicted` is the
  /// simulator's length of a step; it stands beside the median when more than one step was run.
  void finish(nlohmann::json summary, um::Nanoseconds predicted);

 private:
  [[nodiscard]] double images_per_second(um::Nanoseconds step) const;
  void print(const nlohmann::json& summary) const;

  JsonLines json_;
  ProgressLine progress_;
  std::size_t batch_;
  um::Bytes budget_;
  std::vector<um::Nanoseconds> durations_;  // of the steps
  um::Counters counters_;                   // their sum
  um::Nanoseconds stalled_{0};              // their sum
  std::optional<float> first_loss_;
  float last_loss_ = 0;
  std::optional<Evaluation> evaluation_;
};

}  // namespace spillway::cli
