#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#ifdef __SSE2__
#include <emmintrin.h>
#endif

#include "src/ops/precision.h"

namespace spillway::host {

// The numbers of one byte of a mask, kBits but for the last byte of a tensor: bit l is that of
// number l. All are read before the first is written, so an output may be an input.
//
// No branch depends on a number. Compilers made some, which nobody sees on zeros: on numbers of
// both signs, sums took 3.6 times as long, and gradients 2.1 times.
inline constexpr std::size_t kBits = 8;

#ifdef __SSE2__
/// Eight numbers.
struct Lanes {
  __m128 low;
  __m128 high;
};
inline Lanes load_lanes(const float* numbers) {
  return {.low = _mm_loadu_ps(numbers), .high = _mm_loadu_ps(numbers + 4)};
}
inline Lanes load_lanes(const Bfloat16* numbers) {
  const __m128i halves = _mm_loadu_si128(reinterpret_cast<const __m128i*>(numbers));
  const __m128i zero = _mm_setzero_si128();
  return {.low = _mm_castsi128_ps(_mm_unpacklo_epi16(zero, halves)),
          .high = _mm_castsi128_ps(_mm_unpackhi_epi16(zero, halves))};
}
inline void store_lanes(const Lanes& lanes, float* numbers) {
  _mm_storeu_ps(numbers, lanes.low);
  _mm_storeu_ps(numbers + 4, lanes.high);
}
/// Rounded as Bfloat16 does, in the lower halves.
inline __m128i round_lanes(__m128 numbers) {
  const __m128i bits = _mm_castps_si128(numbers);
  const __m128i odd = _mm_and_si128(_mm_srli_epi32(bits, 16), _mm_set1_epi32(1));
  const __m128i up = _mm_add_epi32(bits, _mm_add_epi32(odd, _mm_set1_epi32(0x7FFF)));
  const __m128i nan = _mm_castps_si128(_mm_cmpunord_ps(numbers, numbers));
  const __m128i kept =
      _mm_or_si128(_mm_and_si128(nan, _mm_set1_epi32(0x7FFF0000)), _mm_andnot_si128(nan, up));
  return _mm_srai_epi32(kept, 16);
}
inline void store_lanes(const Lanes& lanes, Bfloat16* numbers) {
  _mm_storeu_si128(reinterpret_cast<__m128i*>(numbers),
                   _mm_packs_epi32(round_lanes(lanes.low), round_lanes(lanes.high)));
}
inline Lanes sum_lanes(const Lanes& a, const Lanes& b) {
  return {.low = _mm_add_ps(a.low, b.low), .high = _mm_add_ps(a.high, b.high)};
}

/// All bits of those of four floats whose bit is set, from bit `first` on.
inline __m128 set_lanes(unsigned bits, unsigned first) {
  const __m128i lane = _mm_set_epi32(8, 4, 2, 1);
  const __m128i all = _mm_set1_epi32(static_cast<int>(bits >> first));
  return _mm_castsi128_ps(_mm_cmpeq_epi32(_mm_and_si128(all, lane), lane));
}
inline Lanes masked_lanes(const Lanes& numbers, unsigned bits) {
  return {.low = _mm_and_ps(set_lanes(bits, 0), numbers.low),
          .high = _mm_and_ps(set_lanes(bits, 4), numbers.high)};
}
#endif

/// y = max(0, a + b). A NaN is no negative number, so it stays. Returns the byte: which of y are
/// above zero.
template <class T>
[[nodiscard]] std::uint8_t add_rectified(const T* a, const T* b, T* y, std::size_t count) {
#ifdef __SSE2__
  if (count == kBits) {
    const __m128 zero = _mm_setzero_ps();  // of two zeros, or beside a NaN, max gives its second
    const Lanes sum = sum_lanes(load_lanes(a), load_lanes(b));
    const Lanes kept{.low = _mm_max_ps(zero, sum.low), .high = _mm_max_ps(zero, sum.high)};
    store_lanes(kept, y);
    const int above = _mm_movemask_ps(_mm_cmpgt_ps(kept.low, zero)) +
                      16 * _mm_movemask_ps(_mm_cmpgt_ps(kept.high, zero));
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
template <class T>
void add_masked(const T* a, const T* b, unsigned bits, T* d, T* copy, std::size_t count) {
#ifdef __SSE2__
  if (count == kBits) {
    const Lanes kept = masked_lanes(sum_lanes(load_lanes(a), load_lanes(b)), bits);
    store_lanes(kept, d);
    store_lanes(kept, copy);
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
template <class T>
void keep_masked(const T* a, unsigned bits, T* d, std::size_t count) {
#ifdef __SSE2__
  if (count == kBits) {
    store_lanes(masked_lanes(load_lanes(a), bits), d);
    return;
  }
#endif
  for (std::size_t l = 0; l < count; ++l) {
    const float number = a[l];
    d[l] = (bits >> l & 1U) != 0U ? number : 0.F;
  }
}

}  // namespace spillway::host
