#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "nets/shape.h"
#include "src/io/random.h"

namespace spillway {

/// A part of an image, in its pixels, that is resized to `resized`. The network gets `shown` of the
/// result, from (top, left) on.
struct Crop {
  std::size_t left = 0;
  std::size_t top = 0;
  nets::Extent part;
  nets::Extent resized;
  std::size_t shown_left = 0;  ///< in pixels of `resized`
  std::size_t shown_top = 0;
  nets::Extent shown;
};

/// Returns the middle of the whole image, resized so that `fraction` of its shorter side is shown.
/// With 224 and 0.875 as torchvision's Resize(256) and CenterCrop(224).
[[nodiscard]] Crop central_crop(const nets::Extent& image, const nets::Extent& shown,
                                float fraction);

/// Returns a random part of `least` to all of the image's area, 3/4 to 4/3 times as wide as high.
/// Falls back to the middle if ten tries do not fit, as torchvision's RandomResizedCrop does.
[[nodiscard]] Crop drawn_crop(const nets::Extent& image, const nets::Extent& shown, float least,
                              Random& random);

/// Returns a part of `area` of `image`, `ratio` times as wide as high, in whole pixels.
[[nodiscard]] nets::Extent part_of(const nets::Extent& image, double area, double ratio);

/// Draws a number between `from` and `to`, uniform in its logarithm. It has the same bits on every
/// machine.
[[nodiscard]] double drawn_ratio(double from, double to, Random& random);

/// How much a JPEG may be reduced while it is decoded.
enum class Reduction : std::uint8_t {
  kClose,  ///< not below the size that it is resized to
  kFine    ///< not below twice that size: almost as good as no reduction
};

/// Returns the crop of an upright image of some extent.
using ChooseCrop = std::function<Crop(const nets::Extent&)>;

/// Returns the crop of the image in `file`, upright, (height, width, kPixelBytes). Holds no more of
/// the image in memory, except for an interlaced PNG or a progressive JPEG.
/// Throws: as open_image() and ImageDecoder::decode().
[[nodiscard]] std::vector<std::uint8_t> decode_crop(std::span<const std::byte> file,
                                                    const ChooseCrop& choose, Reduction reduction);

}  // namespace spillway
