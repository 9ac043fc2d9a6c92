#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#ifdef __SSE2__
#include <emmintrin.h>
#endif

namespace spillway::host {

// The floats of one byte of a mask, kBits but for the last byte of a tensor: bit l is that of float
// l. All are read before the first is written, so an output may be an input.
//
// No branch depends on a number. Compilers made some, which nobody sees on zeros: on numbers of
// both signs, sums took 3.6 times as long, and gradients 2.1 times.
inline constexpr std::size_t kBits = 8;

#ifdef __SSE2__
/// All bits of those of four floats whose bit is set, from bit `first` on.
inline __m128 set_lanes(unsigned bits, unsigned first) {
  const __m128i lane = _mm_set_epi32(8, 4, 2, 1);
  const __m128i all = _mm_set1_epi32(static_cast<int>(bits >> first));
  return _mm_castsi128_ps(_mm_cmpeq_epi32(_mm_and_si128(all, lane), lane));
}
#endif

/// y = max(0, a + b). A NaN is no negative number, so it stays. Returns the byte: which of y are
/// above zero.
[[nodiscard]] inline std::uint8_t add_rectified(const float* a, const float* b, float* y,
                                                std::size_t count) {
#ifdef __SSE2__
  if (count == kBits) {
    const __m128 zero = _mm_setzero_ps();  // of two zeros, or beside a NaN, max gives its second
    const __m128 low = _mm_max_ps(zero, _mm_add_ps(_mm_loadu_ps(a), _mm_loadu_ps(b)));
    const __m128 high = _mm_max_ps(zero, _mm_add_ps(_mm_loadu_ps(a + 4), _mm_loadu_ps(b + 4)));
    _mm_storeu_ps(y, low);
    _mm_storeu_ps(y + 4, high);
    const int above =
        _mm_movemask_ps(_mm_cmpgt_ps(low, zero)) + 16 * _mm_movemask_ps(_mm_cmpgt_ps(high, zero));
    return static_cast<std::uint8_t>(above);
  }
#endif
  std::array<float, kBits> sums;
  for (std::size_t l = 0; l < count; ++l) {
    const float sum = a[l] + b[l];
    sums[l] = sum < 0.F ? 0.F : sum;
  }
  unsigned bits = 0;
  for (std::size_t l = 0; l < count; ++l) {
    y[l] = sums[l];
    bits |= static_cast<unsigned>(sums[l] > 0.F) << l;
  }
  return static_cast<std::uint8_t>(bits);
}

/// d = copy = a + b where its bit is set, else zero. `copy` may be d.
inline void add_masked(const float* a, const float* b, unsigned bits, float* d, float* copy,
                       std::size_t count) {
#ifdef __SSE2__
  if (count == kBits) {
    const __m128 low = _mm_and_ps(set_lanes(bits, 0), _mm_add_ps(_mm_loadu_ps(a), _mm_loadu_ps(b)));
    const __m128 high =
        _mm_and_ps(set_lanes(bits, 4), _mm_add_ps(_mm_loadu_ps(a + 4), _mm_loadu_ps(b + 4)));
    _mm_storeu_ps(d, low);
    _mm_storeu_ps(d + 4, high);
    _mm_storeu_ps(copy, low);
    _mm_storeu_ps(copy + 4, high);
    return;
  }
#endif
  std::array<float, kBits> sums;
  for (std::size_t l = 0; l < count; ++l) {
    const float sum = a[l] + b[l];
    sums[l] = (bits >> l & 1U) != 0U ? sum : 0.F;
  }
  for (std::size_t l = 0; l < count; ++l) {
    d[l] = sums[l];
    copy[l] = sums[l];
  }
}

/// d = a where its bit is set, else zero.
inline void keep_masked(const float* a, unsigned bits, float* d, std::size_t count) {
#ifdef __SSE2__
  if (count == kBits) {
    const __m128 low = _mm_and_ps(set_lanes(bits, 0), _mm_loadu_ps(a));
    const __m128 high = _mm_and_ps(set_lanes(bits, 4), _mm_loadu_ps(a + 4));
    _mm_storeu_ps(d, low);
    _mm_storeu_ps(d + 4, high);
    return;
  }
#endif
  for (std::size_t l = 0; l < count; ++l) {
    const float number = a[l];
    d[l] = (bits >> l & 1U) != 0U ? number : 0.F;
  }
}

}  // namespace spillway::host
