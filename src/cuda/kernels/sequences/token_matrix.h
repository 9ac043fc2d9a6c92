#pragma once

#include <cstddef>

#include "src/cuda/layout/layout.h"
#include "src/ops/tensor.h"

namespace spillway::cuda {

/// The tokens of a batch of sequences as the rows of a matrix. A plain value, which device code
/// takes too.
struct TokenMatrix {
  std::size_t rows;
  std::size_t tokens;    ///< rows of a sequence
  std::size_t channels;  ///< without padding
  std::size_t stride;    ///< elements from row to row, padding included

  [[nodiscard]] constexpr std::size_t elements() const { return rows * stride; }
};

[[nodiscard]] constexpr TokenMatrix token_matrix(const TensorShape& x) {
  return {.rows = x.batch * x.image.height,
          .tokens = x.image.height,
          .channels = x.image.channels,
          .stride = Layout::padded(x.image.channels)};
}

}  // namespace spillway::cuda
