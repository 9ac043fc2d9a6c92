#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "nets/shape.h"
#include "src/io/images/crop.h"

namespace spillway {

/// How to make an image upright that is stored turned or mirrored. The upright pixel (y, x) is
/// stored in row y and column x, or with both exchanged, each counted from either end.
struct Orientation {
  bool exchanges_sides = false;  ///< stored in row x and column y
  bool mirrors_rows = false;     ///< rows are counted from the last stored one
  bool mirrors_columns = false;  ///< columns are counted from the last stored one
  friend bool operator==(const Orientation&, const Orientation&) = default;
};

/// Size of the upright image. The function is its own inverse.
[[nodiscard]] nets::Extent upright_extent(const Orientation& orientation,
                                          const nets::Extent& stored);

/// Returns the same part of the stored image. Requires: a crop of the upright image.
[[nodiscard]] Crop stored_crop(const Orientation& orientation, const nets::Extent& stored,
                               const Crop& upright);

/// Returns the pixels of `stored`, (height, width, kPixelBytes), in their upright places.
[[nodiscard]] std::vector<std::uint8_t> upright_pixels(const Orientation& orientation,
                                                       const nets::Extent& stored,
                                                       std::vector<std::uint8_t> pixels);

/// Reads the orientation from the first EXIF segment of a JPEG file, as Pillow's exif_transpose()
/// does. Returns upright if the EXIF data are missing or broken. Reads only the file's headers.
[[nodiscard]] Orientation exif_orientation(std::span<const std::byte> jpeg);

}  // namespace spillway
