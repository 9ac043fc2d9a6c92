#pragma once

#include <cstddef>

#include "nets/shape.h"
#include "src/io/random.h"

namespace spillway {

/// A part of an image, in its pixels, that becomes `resized`; of this, `shown` from (top, left) on
/// is what the network gets.
struct Crop {
  std::size_t left = 0;
  std::size_t top = 0;
  nets::Extent part;
  nets::Extent resized;
  std::size_t shown_left = 0;  ///< in pixels of `resized`
  std::size_t shown_top = 0;
  nets::Extent shown;
};

/// All of an image, resized so that `fraction` of its shorter side, compared with that of `shown`,
/// is shown: its middle. Of 224 with 0.875, torchvision's Resize(256) and CenterCrop(224).
[[nodiscard]] Crop central_crop(const nets::Extent& image, const nets::Extent& shown,
                                float fraction);

/// A part of `least` to all of the image's area, 3/4 to 4/3 times as wide as high, anywhere; where
/// ten drawn ones are larger than the image, its middle. As torchvision's RandomResizedCrop draws
/// it.
[[nodiscard]] Crop drawn_crop(const nets::Extent& image, const nets::Extent& shown, float least,
                              Random& random);

/// A part of `area` of `image`, `ratio` times as wide as high, in whole pixels.
[[nodiscard]] nets::Extent part_of(const nets::Extent& image, double area, double ratio);

/// Uniform in logarithm between the two. It has the same bits on every machine.
[[nodiscard]] double drawn_ratio(double from, double to, Random& random);

}  // namespace spillway
