#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "nets/shape.h"
#include "src/io/images/crop.h"

namespace spillway {

/// How an image that is stored turned or mirrored becomes upright: what is upright at (y, x) is
/// stored in row y and column x, or the other way round, each counted from either end.
struct Orientation {
  bool exchanges_sides = false;  ///< it is stored in row x and column y
  bool mirrors_rows = false;     ///< the last stored row is number 0
  bool mirrors_columns = false;  ///< likewise
  friend bool operator==(const Orientation&, const Orientation&) = default;
};

/// Of the upright image. It is its own inverse.
[[nodiscard]] nets::Extent upright_extent(const Orientation& orientation,
                                          const nets::Extent& stored);

/// The same part of an image as it is stored. Requires: a crop of the upright one.
[[nodiscard]] Crop stored_crop(const Orientation& orientation, const nets::Extent& stored,
                               const Crop& upright);

/// The pixels of `stored`, (height, width, kPixelBytes), in their upright places.
[[nodiscard]] std::vector<std::uint8_t> upright_pixels(const Orientation& orientation,
                                                       const nets::Extent& stored,
                                                       std::vector<std::uint8_t> pixels);

/// The orientation that the EXIF data of a JPEG file tell of, as Pillow's exif_transpose() applies
/// it: that of the first segment of such data. Upright where there are none, or where they are
/// broken. Looks at nothing behind the file's headers.
[[nodiscard]] Orientation exif_orientation(std::span<const std::byte> jpeg);

}  // namespace spillway
