#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>

#include "src/cli/terminal/progress_line.h"
#include "src/cli/train/json_lines.h"
#include "src/train/session.h"
#include "src/train/train.h"
#include "src/train/training_summary.h"
#include "um/bytes.h"
#include "um/nanoseconds.h"

namespace spillway::cli {

/// Tells the user how a training goes: a progress line on standard error, a JSON line a step, and
/// what it all came to at the end.
class TrainingReport {
 public:
  /// `batch` images a step within `budget`. Throws: um::Error when `json_path` cannot be written.
  TrainingReport(const std::string& json_path, std::size_t batch, um::Bytes budget);

  void step(std::uint64_t step, std::uint64_t epoch, const StepReport& report);
  void evaluation(std::uint64_t step, std::uint64_t epoch, const Evaluation& evaluation);

  /// Adds what the steps came to, to `line`, writes it as the last one, and tells the user.
  void finish(nlohmann::json line, const TrainingSummary& summary);

 private:
  [[nodiscard]] double images_per_second(um::Nanoseconds step) const;
  void print(const TrainingSummary& summary) const;

  JsonLines json_;
  ProgressLine progress_;
  std::size_t batch_;
  um::Bytes budget_;
};

}  // namespace spillway::cli
