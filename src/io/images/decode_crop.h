#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "nets/shape.h"
#include "src/io/images/crop.h"

namespace spillway {

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
