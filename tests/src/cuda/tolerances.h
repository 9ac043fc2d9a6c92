#pragma once

#include <cmath>

#include "tests/src/tested_precision.h"

namespace spillway::cuda {

using test::expect_products;
using test::expect_within;
using test::has_float_tensors;
using test::is_bf16;
using test::random_values;
using test::rounded;
using test::tested_precision;
using test::Values;

inline constexpr bool kIsCuda = true;

/// As expect_within(), where `tolerance` covers the float arithmetic of the host: twice that here,
/// as powers and exponentials err by more on a device.
inline void expect_near(const Values& actual, const Values& expected, double tolerance) {
  expect_within(actual, expected, 2 * tolerance);
}

/// By how much sums of `terms` products of numbers in [-1, 1] may be off, before they are rounded
/// to the tensor's elements.
///
/// They are compared with the definition in double, so that all of the tolerance is the device's.
/// fp32 sums in float: sum_tolerance(). bf16: the products are exact in float; tensor cores cut
/// sums off instead of rounding them, which errs in one direction and by twice as much: four times
/// the tolerance. TF32 has 10 bits behind the point and may be cut off, so that a factor errs by up
/// to 2^-10 of itself and a product by 2^-9, about 2^-10 in the root mean square; the n products,
/// 1/3 each in the root mean square, err together by sqrt(n) / 3 * 2^-10 in the root mean square
/// where the signs differ and as much again from the common direction; six times that for the worst
/// of many sums. How its sums err is little beside that.
[[nodiscard]] inline double product_tolerance(std::size_t terms) {
  const double rounding = host::sum_tolerance(terms);
  switch (tested_precision()) {
    case Precision::kFp32:
      return rounding;
    case Precision::kTf32:
      return rounding + std::sqrt(static_cast<double>(terms)) * std::ldexp(4.0, -10);
    case Precision::kBf16:
      break;
  }
  return 4 * rounding;
}

}  // namespace spillway::cuda
