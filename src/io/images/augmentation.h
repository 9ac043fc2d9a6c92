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

/// The largest Augmentation::hue: half of the circle in each direction.
inline constexpr float kMostHue = 0.5F;

/// How training images are changed, anew in each epoch.
struct Augmentation {
  /// The smallest fraction of an image's area that a random resized crop takes; 0: crop the middle,
  /// as an evaluation does.
  float least_area = 0;
  float flip = 0;          ///< probability of a horizontal flip
  float color_jitter = 0;  ///< brightness, contrast and saturation change by up to this fraction
  float hue = 0;           ///< turns by up to this fraction of the colour circle, at most 0.5
  float erase = 0;         ///< probability of erasing a rectangle
  friend bool operator==(const Augmentation&, const Augmentation&) = default;
};

/// Returns the augmentation of a name: "none"; "standard", a crop and a flip as usual for ImageNet;
/// or "strong", with colours and erasing, too. Nothing for other names.
[[nodiscard]] std::optional<Augmentation> find_augmentation(std::string_view name);

/// Returns "crop 0.08, flip 0.5", for the user.
[[nodiscard]] std::string to_string(const Augmentation& augmentation);

enum class ColorProperty : std::uint8_t { kBrightness, kContrast, kSaturation, kHue };

/// Multiplies a property of an image (3, H, W) of values between 0 and 1 by `factor`, as
/// torchvision's adjust_brightness(), adjust_contrast() and adjust_saturation() do. Turns the hue
/// by that fraction of its circle, as adjust_hue() does.
void adjust(ColorProperty property, float factor, std::span<float> image);

/// The largest changes of colours.
struct ColorChanges {
  float strength = 0;  ///< factors are from max(0, 1 - this) to 1 + this; 0: all are 1
  float hue = 0;       ///< turns by at most this, 0 to 0.5
};

/// Changes all properties by random amounts in random order.
void jitter_colors(const ColorChanges& most, Random& random, std::span<float> image);

}  // namespace spillway
