#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "nets/shape.h"
#include "src/io/images/crop.h"

namespace spillway {

/// How much smaller than the whole image a JPEG may be decoded.
enum class Reduction : std::uint8_t {
  kClose,  ///< as long as it is no smaller than what it is resized to
  kFine    ///< or than twice as much: hardly to be told from a whole one
};

/// The crop of an image of some extent, which is that of the upright one.
using ChooseCrop = std::function<Crop(const nets::Extent&)>;

/// What the crop of the image in `file` shows, upright, (height, width, kPixelBytes). No more of
/// the image than that is held in memory, unless it is an interlaced PNG or a progressive JPEG.
/// Throws: as open_image() and ImageDecoder::decode().
[[nodiscard]] std::vector<std::uint8_t> decode_crop(std::span<const std::byte> file,
                                                    const ChooseCrop& choose, Reduction reduction);

}  // namespace spillway
