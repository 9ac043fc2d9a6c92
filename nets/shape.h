#pragma once

#include <cstddef>
#include <string>

#include "nets/saturated.h"

namespace spillway::nets {

/// What one image is at some point of a network: (C, H, W). Vectors are (C, 1, 1).
struct Shape {
  std::size_t channels = 0;
  std::size_t height = 1;
  std::size_t width = 1;

  /// The largest size_t where there are more.
  [[nodiscard]] constexpr std::size_t elements() const {
    return saturated_product({channels, height, width});
  }
  friend constexpr bool operator==(const Shape&, const Shape&) = default;
};

/// "64x56x56"
[[nodiscard]] std::string to_string(const Shape& shape);

/// Two numbers, one down and one across an image: a kernel's size, a stride, a padding.
struct Extent {
  std::size_t height = 1;
  std::size_t width = 1;
  friend constexpr bool operator==(const Extent&, const Extent&) = default;
};

/// The same number both ways.
[[nodiscard]] constexpr Extent square(std::size_t side) { return {side, side}; }

}  // namespace spillway::nets
