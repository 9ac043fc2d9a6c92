#pragma once

#include <bit>
#include <cstdint>

namespace spillway {

/// The number whose bits as a bfloat16 are `bits`.
[[nodiscard]] inline float float_of_bfloat16(std::uint16_t bits) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16U);
}

/// The number whose bits as an IEEE 754 float of 16 bits are `bits`.
[[nodiscard]] inline float float_of_half(std::uint16_t bits) {
  constexpr std::uint32_t kLargestExponent = 31;
  const std::uint32_t sign = (bits & 0x8000U) << 16U;
  const std::uint32_t exponent = (bits >> 10U) & kLargestExponent;
  const std::uint32_t fraction = bits & 0x3FFU;
  if (exponent == 0) {  // a multiple of 2^-24
    const float size = static_cast<float>(fraction) * 0x1p-24F;
    return sign == 0 ? size : -size;
  }
  // Both biases: 15 and 127. Infinities and what is no number have the largest exponent.
  const std::uint32_t wider = exponent == kLargestExponent ? 255U : exponent + (127U - 15U);
  return std::bit_cast<float>(sign | wider << 23U | fraction << 13U);
}

}  // namespace spillway
