#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "src/data/images/image_decoder.h"
#include "src/data/images/resample_axis.h"

namespace spillway {

/// Resizes an image that comes row by row: across at once, down at the end. It holds as many rows
/// as come, each as long as those of the result.
class Resampler {
 public:
  Resampler(ResampleAxis columns, ResampleAxis rows);

  /// The pixels that are needed.
  [[nodiscard]] PixelRange range() const;
  /// Takes the next row of range(), kPixelBytes a pixel. Requires: as many as range() has.
  void add(const std::uint8_t* row);
  /// (height, width, kPixelBytes). Requires: all rows have come.
  [[nodiscard]] std::vector<std::uint8_t> result() const;

 private:
  ResampleAxis columns_;
  ResampleAxis rows_;
  std::vector<std::int32_t> row_;       // at hand, (width of the image, kPixelBytes)
  std::vector<std::uint8_t> narrowed_;  // (rows, width of the result, kPixelBytes)
  std::size_t added_ = 0;
};

}  // namespace spillway
