#pragma once

#include <algorithm>
#include <cmath>
#include <span>

namespace spillway {

/// What is said of a tensor with a number that is not finite.
inline constexpr const char* kNotFinite = "holds a number that is not finite";

[[nodiscard]] inline bool is_finite(std::span<const float> numbers) {
  return std::ranges::all_of(numbers, [](float number) { return std::isfinite(number); });
}

}  // namespace spillway
