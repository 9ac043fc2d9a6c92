#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <fstream>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <string>

#include "nets/network.h"
#include "src/cli/terminal/terminal.h"
#include "src/cli/train/tensorboard_log.h"
#include "src/train/evaluation.h"
#include "src/train/session.h"
#include "src/train/train.h"
#include "um/bytes.h"

namespace spillway::cli {

/// The samples of a step: images, or texts with this many tokens each.
struct StepSamples {
  std::size_t batch = 0;
  std::size_t tokens_each = 0;  ///< 0: images
};

/// Returns the samples of a step of `network`.
[[nodiscard]] StepSamples samples_of_step(const nets::Network& network, std::size_t batch);

/// Returns an evaluation's results for the summary of train --json.
[[nodiscard]] nlohmann::json test_figures(const Evaluation& evaluation, bool is_of_text);

/// The steps of a training: number of steps done before, and the last one.
struct StepRange {
  std::uint64_t before = 0;
  std::uint64_t last = 0;
};

/// Throws: um::Error when a resumed training cannot go on in the file at `path`, since another
/// program wrote it.
void expect_own_log(const std::string& path);

/// Writes JSON objects, one per line, to a file or standard output as they come.
class JsonLines {
 public:
  /// Writes nothing if `path` is empty, and to standard output for "-". A training that `goes_on`
  /// keeps the whole lines of the file. Throws: um::Error when the file cannot be opened.
  JsonLines(const std::string& path, bool goes_on);

  /// Throws: um::Error when the file cannot be written.
  void write(const nlohmann::json& object);

 private:
  std::string path_;
  std::ofstream file_;
};

/// Reports a training: a progress line on standard error, a JSON line and TensorBoard's numbers per
/// step, and a summary.
class TrainingReport {
 public:
  /// Reports steps within `budget`. There may be no `tensorboard`.
  TrainingReport(JsonLines json, std::optional<TensorBoardLog> tensorboard,
                 const StepSamples& samples, const StepRange& steps, um::Bytes budget);
  TrainingReport(const TrainingReport&) = delete;
  TrainingReport& operator=(const TrainingReport&) = delete;
  /// Shows the last step, however the training ended.
  ~TrainingReport();

  void step(std::uint64_t step, std::uint64_t epoch, const StepReport& report);
  void evaluation(std::uint64_t step, std::uint64_t epoch, const Evaluation& evaluation);

  void early_stop(std::uint64_t step, const BestEvaluation& best);

  /// Prints a warning on a line of its own.
  void warn(const std::string& sentence);

  /// Adds the results of all steps to `line` and writes it as the last line. Throws: um::Error.
  void finish(nlohmann::json line, const TrainingSummary& summary);
  /// Prints the results of all steps. Their prediction is by the times of `profile_file`, or if
  /// that is empty by those that were measured before the first step.
  void print(const TrainingSummary& summary, const std::string& profile_file);

 private:
  // Shows the last step, and ends its line.
  void end_progress();
  // Returns the results of the first and the last step: "loss 3.55 -> 0.013, accuracy 100.0 %
  // (test 99.2 %)"
  [[nodiscard]] std::string what_was_learned(const TrainingSummary& summary) const;
  [[nodiscard]] double samples_per_second(um::Nanoseconds step) const;
  // Estimates the time of the steps after `step` from the speed of those before.
  [[nodiscard]] std::string time_left(std::uint64_t step) const;
  [[nodiscard]] std::string throughput(um::Nanoseconds step) const;
  [[nodiscard]] bool is_of_text() const { return samples_.tokens_each > 0; }

  void add_to_tensorboard(std::uint64_t step, const StepReport& report);

  JsonLines json_;
  std::optional<TensorBoardLog> tensorboard_;
  ProgressLine progress_;
  StepSamples samples_;
  StepRange steps_;
  std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
  um::Bytes budget_;
};

/// Returns whether steps took other times than predicted, by more than 15 %.
[[nodiscard]] bool is_far_off(const TrainingSummary& summary);
/// Returns whether more than ten steps did so: the kept times are wrong.
[[nodiscard]] bool shows_other_times(const TrainingSummary& summary);

/// Returns "1:02:03" or "2:03".
[[nodiscard]] std::string clock_text(double seconds);

/// Throws: um::Error when a sample of the network has several labels, which cannot have a matrix.
void expect_confusion_matrix_of(const nets::Network& network);

/// Writes Evaluation::confusion as CSV: "label,cat,dog,..." with a column for each prediction, then
/// a row for each label. Where there are no `class_names`, classes are numbers. Writes to standard
/// output if `path` is "-". Throws: um::Error when the file cannot be written.
void write_confusion_matrix(std::span<const std::uint64_t> confusion,
                            std::span<const std::string> class_names, const std::string& path);

}  // namespace spillway::cli
