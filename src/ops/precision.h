#pragma once

#include <bit>
#include <cstdint>
#include <optional>
#include <string_view>

namespace spillway {

/// How activations and gradients are stored and multiplied. Parameters, their gradients, statistics
/// and sums are float in all of them.
enum class Precision {
  kFp32,  ///< float, multiplied as float
  kTf32,  ///< float, multiplied as TF32
  kBf16   ///< bfloat16 activations and gradients; kernels read the weights as bfloat16
};

/// "fp32", "tf32", "bf16".
[[nodiscard]] constexpr std::string_view to_string(Precision precision) {
  switch (precision) {
    case Precision::kFp32:
      return "fp32";
    case Precision::kTf32:
      return "tf32";
    case Precision::kBf16:
      break;
  }
  return "bf16";
}

/// Nothing when no precision has this name.
[[nodiscard]] constexpr std::optional<Precision> find_precision(std::string_view name) {
  for (const Precision each : {Precision::kFp32, Precision::kTf32, Precision::kBf16}) {
    if (to_string(each) == name) return each;
  }
  return std::nullopt;
}

/// The upper half of a 32-bit float, for code that runs on the CPU. Calculations are in float: it
/// becomes one, and a float becomes the nearest bfloat16, of two equally near the even one, as
/// devices round. A NaN stays one.
class Bfloat16 {
 public:
  constexpr Bfloat16() = default;
  constexpr Bfloat16(float value) : bits_{round(value)} {}
  // Else GCC makes an object of its own in loops that it would vectorise, and does not.
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
  // Both results are computed, so that loops of it are vectorised.
  [[nodiscard]] static constexpr std::uint16_t round(float value) {
    const auto bits = std::bit_cast<std::uint32_t>(value);
    constexpr std::uint32_t kInfinity = 0x7F800000;
    const std::uint32_t rounded = (bits + 0x7FFFU + (bits >> 16U & 1U)) >> 16U;
    return static_cast<std::uint16_t>((bits & ~0x80000000U) > kInfinity ? 0x7FFFU : rounded);
  }

  std::uint16_t bits_ = 0;
};

}  // namespace spillway
