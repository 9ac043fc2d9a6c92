#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>

#include "src/host/layout/layout.h"
#include "src/ops/tensor.h"

namespace spillway::host {

/// The tokens of a batch of sequences as rows of a matrix.
struct TokenRows {
  TokenRows(const Layout& layout, const TensorShape& x)
      : count{x.batch * x.image.height},
        channels{x.image.channels},
        stride{layout.padded(x.image).channels} {}

  /// Zeroes the padding after the channels of `row`.
  template <class T>
  void zero_padding(T* row) const {
    std::fill(row + channels, row + stride, T{});
  }

  std::size_t count;
  std::size_t channels;
  std::size_t stride;  ///< distance between rows; elements between channels and stride are padding
};

/// Returns exp(x) within two units in the last place: 0 below -87, exp(88.7) above 88.7, NaN for
/// NaN. Has no branch and no call, so that loops over it are vectorised. The polynomial is that of
/// Cephes's expf.
[[nodiscard]] inline float exponential(float x) {
  constexpr float kLeast = -87.F;
  constexpr float kMost = 88.7F;
  constexpr float kRound = 12582912.F;  // 1.5 2^23: a sum with it is rounded to an integer
  constexpr float kLog2High = 0.693359375F;
  constexpr float kLog2Low = -2.12194440e-4F;
  constexpr unsigned kMantissa = 23;
  float within = x < kLeast ? kLeast : x;
  within = within > kMost ? kMost : within;
  const float shifted = within * 1.44269504F + kRound;
  const float whole = shifted - kRound;
  const float rest = within - whole * kLog2High - whole * kLog2Low;
  float sum = 1.9875691500e-4F;
  sum = sum * rest + 1.3981999507e-3F;
  sum = sum * rest + 8.3334519073e-3F;
  sum = sum * rest + 4.1665795894e-2F;
  sum = sum * rest + 1.6666665459e-1F;
  sum = sum * rest + 5.0000001201e-1F;
  sum = sum * rest * rest + rest + 1.F;
  // 2^whole as two factors, since the largest power exceeds a float.
  const auto power = std::bit_cast<std::int32_t>(shifted) - std::bit_cast<std::int32_t>(kRound);
  const std::int32_t half = power >> 1;
  const auto factor = [](std::int32_t exponent) {
    return std::bit_cast<float>((exponent + 127) << kMantissa);
  };
  const float scaled = sum * factor(half) * factor(power - half);
  return x < kLeast ? 0.F : scaled;
}

}  // namespace spillway::host
