#pragma once

#include <cstdint>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "prefetch/files/json.h"
#include "src/io/data/image_folder.h"
#include "src/io/data/mixing.h"
#include "src/ops/learning_rate.h"
#include "src/ops/training_operations.h"
#include "src/train/checkpoint/checkpoint.h"

namespace spillway {

/// The numbers from 0 up that a setting may have, whether a flag gives it or a file.
template <class Number>
struct SettingRange {
  Number least{};
  Number most = std::numeric_limits<Number>::max();
  bool is_above_least = false;  ///< `least` is not one of them
  bool is_below_most = false;   ///< nor is `most`

  [[nodiscard]] constexpr bool is_too_small(Number number) const {
    return !(is_above_least ? number > least : number >= least);
  }
  [[nodiscard]] constexpr bool is_too_large(Number number) const {
    return !(is_below_most ? number < most : number <= most);
  }
};

/// What is wrong with `number`: "is above 1", "is not below 1", "is below 0" or "is not above 0".
/// Empty where it is in `range`.
[[nodiscard]] std::string complaint(const SettingRange<float>& range, float number);
[[nodiscard]] std::string complaint(const SettingRange<double>& range, double number);

inline constexpr SettingRange<std::uint64_t> kBatchRange{.least = 1, .most = 1U << 20U};
inline constexpr SettingRange<std::uint64_t> kThreadRange{.least = 1, .most = 1024};
/// Steps that are done: beyond them, a double cannot count.
inline constexpr SettingRange<std::uint64_t> kStepRange{.most = std::uint64_t{1} << 53U};

inline constexpr SettingRange<float> kLearningRateRange{};
inline constexpr SettingRange<float> kStepFactorRange{};
inline constexpr SettingRange<float> kMomentumRange{.most = 1};
inline constexpr SettingRange<float> kWeightDecayRange{};
inline constexpr SettingRange<float> kClipNormRange{.is_above_least = true};
inline constexpr SettingRange<float> kEpsilonRange{.is_above_least = true};
/// Of Adam's two betas, and rmsprop's alpha.
inline constexpr SettingRange<double> kBetaRange{.most = 1, .is_below_most = true};
inline constexpr SettingRange<double> kAverageDecayRange{.most = 1, .is_below_most = true};
inline constexpr SettingRange<float> kLabelSmoothingRange{.most = 1, .is_below_most = true};
inline constexpr SettingRange<float> kDropoutRange{.most = 1, .is_below_most = true};

/// Of an augmentation: crop area, flip, color jitter and erasing.
inline constexpr SettingRange<float> kAugmentationRange{.most = 1};
inline constexpr SettingRange<float> kHueRange{.most = kMostHue};
inline constexpr SettingRange<float> kMixAlphaRange{.most = kMostMixAlpha};
inline constexpr SettingRange<float> kEvalCropRange{.least = 0.01F, .most = 1};
inline constexpr SettingRange<double> kValidationRange{
    .most = 1, .is_above_least = true, .is_below_most = true};

/// The number of a setting in a file. Throws: um::Error when it is not in `range`.
[[nodiscard]] std::uint64_t read_setting(const prefetch::JsonView& json,
                                         const SettingRange<std::uint64_t>& range);
[[nodiscard]] float read_setting(const prefetch::JsonView& json, const SettingRange<float>& range);
[[nodiscard]] double read_setting(const prefetch::JsonView& json,
                                  const SettingRange<double>& range);

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

/// {"budget": "min+20%", "planner": "joint", ...}; and back from the "planning" in `root`, or
/// nullopt without one. Throws: um::Error that names the place.
[[nodiscard]] nlohmann::json to_json(const KeptPlanning& planning);
[[nodiscard]] std::optional<KeptPlanning> read_planning(const prefetch::JsonView& root);

/// Those of all of them that are given, as checkpoints have them.
[[nodiscard]] nlohmann::json to_json(const KeptSettings& settings);

}  // namespace spillway
