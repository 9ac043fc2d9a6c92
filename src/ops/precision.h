#pragma once

#include <optional>
#include <string_view>

#include "src/numbers/narrow_floats.h"  // Bfloat16, of which tensors are with kBf16

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

}  // namespace spillway
