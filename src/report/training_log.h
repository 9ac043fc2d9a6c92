#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace spillway {

/// What `spillway train --json` tells of a step, beside its number and epoch.
inline constexpr std::array kStepFigures{"loss",
                                         "accuracy",
                                         "learning_rate",
                                         "seconds",
                                         "data_wait_seconds",
                                         "stalled_seconds",
                                         "near_peak_bytes",
                                         "bytes_prefetched",
                                         "bytes_offloaded",
                                         "faults"};
/// What it tells of an evaluation.
inline constexpr std::array kEvaluationFigures{"test_loss", "test_accuracy", "test_top5",
                                               "perplexity"};

/// Figures of a step of a training: NaN where the file does not tell one, or it was no number.
template <std::size_t kCount>
struct FiguresOfStep {
  std::uint64_t step = 0;  ///< from 1
  std::uint64_t epoch = 0;
  std::array<double, kCount> figures{};
};
using TrainingStep = FiguresOfStep<kStepFigures.size()>;
using TrainingEvaluation = FiguresOfStep<kEvaluationFigures.size()>;

/// What was trained, as far as the summary tells.
struct TrainedSubject {
  std::string network;
  std::string data;
  std::uint64_t batch = 0;
  /// Near memory given, and the need of a run with all near; 0 where the file does not tell it.
  std::uint64_t budget_bytes = 0;
  std::uint64_t resident_bytes = 0;
};

/// What `spillway train --json` wrote, by step. Where a training went on from a checkpoint, and
/// both parts are in one file, steps that ran twice are as they ran last.
struct TrainingLog {
  std::vector<TrainingStep> steps;
  std::vector<TrainingEvaluation> evaluations;
  std::optional<std::uint64_t>
      best_step;                          ///< of a training that ended early: its best evaluation's
  std::optional<TrainedSubject> subject;  ///< nothing where the file does not end with a summary
};

/// Longer lines are none of a training's log.
inline constexpr std::size_t kLongestLogLine = 1U << 20U;

/// Whether `text` begins with a line that `spillway train --json` writes.
[[nodiscard]] bool is_training_log(std::string_view text);

/// A last line that is cut, of a training that still runs or was killed, is left out.
/// Throws: um::Error that names `name`, the line and the member that is wrong.
[[nodiscard]] TrainingLog read_training_log(const std::string& text, const std::string& name);

/// Points that a curve has at most.
inline constexpr std::size_t kMostPoints = 600;

/// What the page draws of a training: {"steps", "first_step", "last_step", "said": [sentence],
/// "curves": {figure: [[step, mean, min, max]]}, "evaluations": [{"step", "epoch", figure:
/// number}]}. Figures are those of kStepFigures and kEvaluationFigures that were told. Of more than
/// kMostPoints steps, neighbours are one point, at the last one's step. What is no number is left
/// out.
[[nodiscard]] nlohmann::json training_data(const TrainingLog& log);

}  // namespace spillway
