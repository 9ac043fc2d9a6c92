#include "src/data/images/orientation.h"

#include <algorithm>
#include <utility>

#include "src/data/images/image_decoder.h"
#include "um/error.h"

namespace spillway {

nets::Extent upright_extent(const Orientation& orientation, const nets::Extent& stored) {
  return orientation.exchanges_sides ? nets::Extent{.height = stored.width, .width = stored.height}
                                     : stored;
}

Crop stored_crop(const Orientation& orientation, const nets::Extent& stored, const Crop& upright) {
  Crop crop = upright;
  if (orientation.exchanges_sides) {
    std::swap(crop.left, crop.top);
    std::swap(crop.shown_left, crop.shown_top);
    for (nets::Extent* const extent : {&crop.part, &crop.resized, &crop.shown}) {
      std::swap(extent->height, extent->width);
    }
  }
  if (orientation.mirrors_rows) {
    crop.top = stored.height - crop.top - crop.part.height;
    crop.shown_top = crop.resized.height - crop.shown_top - crop.shown.height;
  }
  if (orientation.mirrors_columns) {
    crop.left = stored.width - crop.left - crop.part.width;
    crop.shown_left = crop.resized.width - crop.shown_left - crop.shown.width;
  }
  return crop;
}

std::vector<std::uint8_t> upright_pixels(const Orientation& orientation, const nets::Extent& stored,
                                         std::vector<std::uint8_t> pixels) {
  um::expects(pixels.size() == stored.height * stored.width * kPixelBytes, "pixels of an image");
  if (orientation == Orientation{}) return pixels;
  const nets::Extent upright = upright_extent(orientation, stored);
  std::vector<std::uint8_t> result(pixels.size());
  for (std::size_t y = 0; y < upright.height; ++y) {
    for (std::size_t x = 0; x < upright.width; ++x) {
      std::size_t row = orientation.exchanges_sides ? x : y;
      std::size_t column = orientation.exchanges_sides ? y : x;
      if (orientation.mirrors_rows) row = stored.height - 1 - row;
      if (orientation.mirrors_columns) column = stored.width - 1 - column;
      std::copy_n(&pixels[(row * stored.width + column) * kPixelBytes], kPixelBytes,
                  &result[(y * upright.width + x) * kPixelBytes]);
    }
  }
  return result;
}

}  // namespace spillway
