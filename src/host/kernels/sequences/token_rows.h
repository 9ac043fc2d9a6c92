#pragma once

#include <algorithm>
#include <cstddef>

#include "src/host/layout/layout.h"
#include "src/ops/tensor.h"

namespace spillway::host {

/// The tokens of a batch of sequences as the rows of a matrix.
struct TokenRows {
  TokenRows(const Layout& layout, const TensorShape& x)
      : count{x.batch * x.image.height},
        channels{x.image.channels},
        stride{layout.padded(x.image).channels} {}

  /// Zeroes the padding behind the channels of `row`.
  template <class T>
  void zero_padding(T* row) const {
    std::fill(row + channels, row + stride, T{});
  }

  std::size_t count;
  std::size_t channels;
  std::size_t stride;  ///< from row to row; what lies between channels and stride is padding
};

}  // namespace spillway::host
