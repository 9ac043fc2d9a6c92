#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "src/io/random.h"

namespace spillway {

/// Of Augmentation::hue: half of the circle, in both directions.
inline constexpr float kMostHue = 0.5F;

/// How images to learn from are changed, anew in each epoch.
struct Augmentation {
  /// The smallest part of an image's area that a random resized crop takes; 0: there is none, but
  /// the middle, as in an evaluation.
  float least_area = 0;
  float flip = 0;          ///< probability of left and right exchanged
  float color_jitter = 0;  ///< brightness, contrast and saturation change by up to this part
  float hue = 0;           ///< it turns by up to this part of the circle of colours, at most 0.5
  float erase = 0;         ///< probability of a rectangle without content
  friend bool operator==(const Augmentation&, const Augmentation&) = default;
};

/// That of a name: "none"; "standard", a crop and a flip, as ImageNet's usual recipe has it; or
/// "strong", also colours and erasing. Nothing when there is no such name.
[[nodiscard]] std::optional<Augmentation> find_augmentation(std::string_view name);

/// "crop 0.08, flip 0.5", for the user.
[[nodiscard]] std::string to_string(const Augmentation& augmentation);

enum class ColorProperty : std::uint8_t { kBrightness, kContrast, kSaturation, kHue };

/// Multiplies a property of an image (3, H, W) of values between 0 and 1 by `factor`, as
/// torchvision's adjust_brightness(), adjust_contrast() and adjust_saturation() do. The hue is
/// turned by that part of its circle, as adjust_hue() does.
void adjust(ColorProperty property, float factor, std::span<float> image);

/// How much colours change at most.
struct ColorChanges {
  float strength = 0;  ///< factors are between 1 less this, at least 0, and 1 plus this; 0: are 1
  float hue = 0;       ///< it turns by at most this, 0 to 0.5
};

/// Changes all properties, in a drawn order, by drawn numbers.
void jitter_colors(const ColorChanges& most, Random& random, std::span<float> image);

}  // namespace spillway
