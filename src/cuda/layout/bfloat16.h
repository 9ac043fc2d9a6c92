#pragma once

#include <bit>
#include <cstdint>

namespace spillway::cuda {

/// The upper half of a 32-bit float, for code that runs on the CPU.
struct Bfloat16 {
  std::uint16_t bits = 0;
  friend constexpr bool operator==(Bfloat16, Bfloat16) = default;
};

/// The nearest bfloat16, of two equally near the even one, as the device rounds. A NaN stays one.
[[nodiscard]] constexpr Bfloat16 to_bfloat16(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  constexpr std::uint32_t kInfinity = 0x7F800000;
  if ((bits & ~0x80000000U) > kInfinity) return {.bits = 0x7FFF};
  const std::uint32_t half = 0x7FFFU + (bits >> 16U & 1U);
  return {.bits = static_cast<std::uint16_t>((bits + half) >> 16U)};
}

[[nodiscard]] constexpr float to_float(Bfloat16 value) {
  return std::bit_cast<float>(std::uint32_t{value.bits} << 16U);
}

}  // namespace spillway::cuda
