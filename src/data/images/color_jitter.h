#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "src/data/random/random.h"

namespace spillway {

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
