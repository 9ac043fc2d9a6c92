#pragma once

#include <cstddef>

#include "src/host/layout/onednn.h"
#include "src/ops/precision.h"

namespace spillway::host {

/// A stretch of tokens.
struct TokenRange {
  std::size_t first;
  std::size_t count;

  [[nodiscard]] std::size_t end() const { return first + count; }
};

/// Rows of a head, `width` wide, for products: as they lie in the tensor.
[[nodiscard]] inline Matrix rows_for_products(const float* rows, std::size_t stride,
                                              const TokenRange& /*tokens*/, std::size_t /*width*/,
                                              float* /*room*/) {
  return {.numbers = rows, .stride = stride};
}
/// Likewise of bfloat16: as floats, in `room` for tokens.count x width of them.
[[nodiscard]] inline Matrix rows_for_products(const Bfloat16* rows, std::size_t stride,
                                              const TokenRange& tokens, std::size_t width,
                                              float* room) {
  for (std::size_t i = 0; i < tokens.count; ++i) {
    const Bfloat16* const row = rows + i * stride;
    for (std::size_t c = 0; c < width; ++c) room[i * width + c] = row[c];
  }
  return {.numbers = room, .stride = width};
}

/// Where sums for rows of a head are made, `stride` apart.
struct RowSums {
  float* numbers;
  std::size_t stride;
};
/// In the tensor itself.
[[nodiscard]] inline RowSums row_sums(float* rows, std::size_t stride, std::size_t /*width*/,
                                      float* /*room*/) {
  return {.numbers = rows, .stride = stride};
}
/// In `room`, for rows of bfloat16, which put_rows() writes.
[[nodiscard]] inline RowSums row_sums(Bfloat16* /*rows*/, std::size_t /*stride*/, std::size_t width,
                                      float* room) {
  return {.numbers = room, .stride = width};
}
inline void put_rows(const RowSums& /*sums*/, std::size_t /*count*/, std::size_t /*width*/,
                     const float* /*rows*/, std::size_t /*stride*/) {}
inline void put_rows(const RowSums& sums, std::size_t count, std::size_t width, Bfloat16* rows,
                     std::size_t stride) {
  for (std::size_t i = 0; i < count; ++i) {
    const float* const sum = sums.numbers + i * sums.stride;
    for (std::size_t c = 0; c < width; ++c) rows[i * stride + c] = sum[c];
  }
}

}  // namespace spillway::host
