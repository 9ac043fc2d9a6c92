#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "nets/shape.h"

namespace spillway {

/// Turns images of one shape into images of another: bilinear where an axis grows, averages where
/// it shrinks. One channel becomes many by repetition, three become one by luminance (BT.601).
///
/// Thread safety: any number of threads may use one Resize at once.
class Resize {
 public:
  /// Throws: um::Error when there is no rule for the channels.
  Resize(const nets::Shape& from, const nets::Shape& to);

  /// Requires: `image` and `result` have as many numbers as the two shapes.
  void operator()(std::span<const float> image, std::span<float> result) const;

 private:
  /// One output position reads inputs first, first + 1, ... with these weights; their sum is 1.
  struct Taps {
    std::size_t first = 0;
    std::vector<float> weights;
  };
  using Axis = std::vector<Taps>;  // by output position

  [[nodiscard]] static Axis grow(std::size_t from, std::size_t to);
  [[nodiscard]] static Axis shrink(std::size_t from, std::size_t to);
  [[nodiscard]] static Axis mix_channels(std::size_t from, std::size_t to);
  [[nodiscard]] static Axis scale(std::size_t from, std::size_t to);

  nets::Shape from_;
  nets::Shape to_;
  Axis channels_;
  Axis rows_;
  Axis columns_;
};

}  // namespace spillway
