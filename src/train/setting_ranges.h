#pragma once

#include <cstdint>
#include <limits>
#include <string>

#include "src/data/image_folder.h"
#include "src/data/mixing.h"

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

}  // namespace spillway
