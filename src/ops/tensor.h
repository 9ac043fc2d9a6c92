#pragma once

#include <cstddef>

#include "nets/shape.h"
#include "um/bytes.h"

namespace spillway {

/// The logical shape of a batch: (N, C, H, W) of 32-bit floats. How a backend lays it out, and with
/// how much padding, is the backend's affair.
struct TensorShape {
  std::size_t batch = 0;
  nets::Shape image;

  [[nodiscard]] constexpr std::size_t elements() const { return batch * image.elements(); }
  friend constexpr bool operator==(const TensorShape&, const TensorShape&) = default;
};

/// Bytes of `count` 32-bit floats.
[[nodiscard]] constexpr um::Bytes float_bytes(std::size_t count) {
  return um::Bytes{count * sizeof(float)};
}

}  // namespace spillway
