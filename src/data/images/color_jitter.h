#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "src/data/random/random.h"

namespace spillway {

enum class ColorProperty : std::uint8_t { kBrightness, kContrast, kSaturation };

/// Multiplies a property of an image (3, H, W) of values between 0 and 1 by `factor`, as
/// torchvision's adjust_brightness(), adjust_contrast() and adjust_saturation() do.
void adjust(ColorProperty property, float factor, std::span<float> image);

/// Multiplies all three, in a drawn order, by factors drawn between 1 - `strength`, at least 0, and
/// 1 + `strength`.
void jitter_colors(float strength, Random& random, std::span<float> image);

}  // namespace spillway
