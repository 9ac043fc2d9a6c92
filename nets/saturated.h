#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>

namespace spillway::nets {

/// The product and the sum of `numbers`, or the largest size_t where they are larger than that:
/// what a user's sizes come to can be compared with a limit, whatever they are.
[[nodiscard]] constexpr std::size_t saturated_product(std::initializer_list<std::size_t> numbers) {
  std::size_t product = 1;
  bool is_too_large = false;
  for (const std::size_t number : numbers) {
    if (number == 0) return 0;
    is_too_large = __builtin_mul_overflow(product, number, &product) || is_too_large;
  }
  return is_too_large ? SIZE_MAX : product;
}

[[nodiscard]] constexpr std::size_t saturated_sum(std::initializer_list<std::size_t> numbers) {
  std::size_t sum = 0;
  for (const std::size_t number : numbers) {
    if (__builtin_add_overflow(sum, number, &sum)) return SIZE_MAX;
  }
  return sum;
}

}  // namespace spillway::nets
