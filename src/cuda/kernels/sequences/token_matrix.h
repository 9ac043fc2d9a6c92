#pragma once

#include <cstddef>

#include "src/cuda/layout/layout.h"
#include "src/ops/tensor.h"

namespace spillway::cuda {

/// The tokens of a batch of sequences as rows of a matrix; a plain value that device code can use,
/// too.
struct TokenMatrix {
  std::size_t rows;
  std::size_t tokens;    ///< rows per sequence
  std::size_t channels;  ///< without padding
  std::size_t stride;    ///< elements between rows, padding included

  [[nodiscard]] constexpr std::size_t elements() const { return rows * stride; }
};

[[nodiscard]] constexpr TokenMatrix token_matrix(const TensorShape& x) {
  return {.rows = x.batch * x.image.height,
          .tokens = x.image.height,
          .channels = x.image.channels,
          .stride = Layout::padded(x.image.channels)};
}

}  // namespace spillway::cuda
