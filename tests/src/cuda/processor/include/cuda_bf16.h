#pragma once

// bfloat16 as device code uses it.

#include "src/ops/bfloat16.h"

// NOLINTBEGIN(readability-identifier-naming,bugprone-reserved-identifier)
struct __nv_bfloat16 {
  std::uint16_t bits;
};
struct alignas(4) __nv_bfloat162 {
  __nv_bfloat16 x;
  __nv_bfloat16 y;
};

inline __nv_bfloat16 __float2bfloat16_rn(float value) { return {spillway::Bfloat16{value}.bits()}; }
inline float __bfloat162float(__nv_bfloat16 value) {
  return spillway::Bfloat16::from_bits(value.bits);
}
inline std::uint16_t __bfloat16_as_ushort(__nv_bfloat16 value) { return value.bits; }
inline __nv_bfloat162 __floats2bfloat162_rn(float x, float y) {
  return {__float2bfloat16_rn(x), __float2bfloat16_rn(y)};
}
// NOLINTEND(readability-identifier-naming,bugprone-reserved-identifier)
