#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "prefetch/files/json.h"
#include "src/data/image_folder.h"
#include "src/data/mixing.h"
#include "src/ops/optimizer.h"
#include "src/train/best_evaluation.h"
#include "src/train/checkpoint.h"
#include "src/train/learning_rate.h"
#include "src/train/setting_ranges.h"

namespace spillway {

/// The number of a setting in a file. Throws: um::Error when it is not in `range`.
[[nodiscard]] std::uint64_t read_setting(const prefetch::JsonView& json,
                                         const SettingRange<std::uint64_t>& range);
[[nodiscard]] float read_setting(const prefetch::JsonView& json, const SettingRange<float>& range);
[[nodiscard]] double read_setting(const prefetch::JsonView& json,
                                  const SettingRange<double>& range);

/// "sgd", "adam", "adamw" or "rmsprop".
[[nodiscard]] std::string name_of(const OptimizerOptions& optimizer);
/// "constant", "step", "multistep" or "cosine".
[[nodiscard]] std::string name_of(Schedule schedule);
/// Nothing when no schedule has this name.
[[nodiscard]] std::optional<Schedule> find_schedule(const std::string& name);

/// {"name": "adamw", "beta1": 0.9, ...}, for checkpoints and summaries; and back. Throws: um::Error
/// when something is missing, or no training has it.
[[nodiscard]] nlohmann::json to_json(const OptimizerOptions& optimizer);
[[nodiscard]] OptimizerOptions read_optimizer(const prefetch::JsonView& json);

/// {"name": "cosine", "rate": 0.01, ...}; and back. Throws: likewise.
[[nodiscard]] nlohmann::json to_json(const LearningRateOptions& options);
[[nodiscard]] LearningRateOptions read_learning_rate(const prefetch::JsonView& json);

/// {"crop_area": 0.08, "flip": 0.5, ...}; and back. Throws: likewise.
[[nodiscard]] nlohmann::json to_json(const ImageOptions& options);
[[nodiscard]] ImageOptions read_images(const prefetch::JsonView& json);

/// {"every": 100, "patience": 3, "keeps_best": true}; and back. Throws: likewise.
[[nodiscard]] nlohmann::json to_json(const EvaluationRule& rule);
[[nodiscard]] EvaluationRule read_evaluation_rule(const prefetch::JsonView& json);

/// {"step": 100, "loss": 0.5, ...}; and back, of the "best" in `root`, nothing where there is none.
/// Throws: likewise.
[[nodiscard]] nlohmann::json to_json(const BestEvaluation& best);
[[nodiscard]] std::optional<BestEvaluation> read_best(const prefetch::JsonView& root);

/// {"step": 100, "loss": 0.5, "top5": 0.99, ...}; and back, of the "last_evaluation" in `root`,
/// nothing where there is none. Throws: likewise.
[[nodiscard]] nlohmann::json to_json(const LastEvaluation& last);
[[nodiscard]] std::optional<LastEvaluation> read_last_evaluation(const prefetch::JsonView& root);

/// {"mixup": 0.2, "cutmix": 1.0}; and back, of the "mixing" in `root`, nothing where there is none.
/// Throws: likewise.
[[nodiscard]] nlohmann::json to_json(const MixOptions& mixing);
[[nodiscard]] MixOptions read_mixing(const prefetch::JsonView& root);

/// Those of all of them that are given, as checkpoints have them.
[[nodiscard]] nlohmann::json to_json(const KeptSettings& settings);

}  // namespace spillway
