#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>

namespace spillway {

/// A bfloat16 (the upper half of a 32-bit float) for code that runs on the CPU. Arithmetic is done
/// in float. Conversion from float rounds to nearest, ties to even, as devices do; a NaN stays a
/// NaN.
class Bfloat16 {
 public:
  constexpr Bfloat16() = default;
  constexpr Bfloat16(float value) : bits_{round(value)} {}
  // Without this operator GCC makes a temporary object, which keeps loops from being vectorised.
  constexpr Bfloat16& operator=(float value) {
    bits_ = round(value);
    return *this;
  }
  [[nodiscard]] static constexpr Bfloat16 from_bits(std::uint16_t bits) {
    Bfloat16 value;
    value.bits_ = bits;
    return value;
  }

  constexpr operator float() const { return std::bit_cast<float>(std::uint32_t{bits_} << 16U); }
  [[nodiscard]] constexpr std::uint16_t bits() const { return bits_; }

 private:
  // Computes both results without a branch, so that loops over it are vectorised.
  [[nodiscard]] static constexpr std::uint16_t round(float value) {
    const auto bits = std::bit_cast<std::uint32_t>(value);
    constexpr std::uint32_t kInfinity = 0x7F800000;
    const std::uint32_t rounded = (bits + 0x7FFFU + (bits >> 16U & 1U)) >> 16U;
    return static_cast<std::uint16_t>((bits & ~0x80000000U) > kInfinity ? 0x7FFFU : rounded);
  }

  std::uint16_t bits_ = 0;
};

/// Returns the value of the IEEE 754 16-bit float with these bits.
[[nodiscard]] inline float float_of_half(std::uint16_t bits) {
  constexpr std::uint32_t kLargestExponent = 31;
  const std::uint32_t sign = (bits & 0x8000U) << 16U;
  const std::uint32_t exponent = (bits >> 10U) & kLargestExponent;
  const std::uint32_t fraction = bits & 0x3FFU;
  if (exponent == 0) {  // a multiple of 2^-24
    const float size = static_cast<float>(fraction) * 0x1p-24F;
    return sign == 0 ? size : -size;
  }
  // The exponent biases are 15 and 127. Infinities and NaNs have the largest exponent.
  const std::uint32_t wider = exponent == kLargestExponent ? 255U : exponent + (127U - 15U);
  return std::bit_cast<float>(sign | wider << 23U | fraction << 13U);
}

/// Number of values of a byte.
inline constexpr std::size_t kByteValues = 256;

/// Converts the bytes of an image, (C, H, W), to numbers. `numbers` is a table of one number per
/// channel and byte value, (C, kByteValues). Requires: `image` has a number for each byte.
inline void look_up(std::span<const std::uint8_t> bytes, std::span<const float> numbers,
                    std::span<float> image) {
  const std::size_t plane = bytes.size() / (numbers.size() / kByteValues);
  for (std::size_t begin = 0; begin < bytes.size(); begin += plane) {
    const float* const of_channel = &numbers[begin / plane * kByteValues];
    for (std::size_t i = begin; i < begin + plane; ++i) image[i] = of_channel[bytes[i]];
  }
}

}  // namespace spillway
