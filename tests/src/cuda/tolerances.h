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

/// Like expect_within(), with a `tolerance` for float arithmetic on the host. Allows twice that,
/// since powers and exponentials are less exact on a device.
inline void expect_near(const Values& actual, const Values& expected, double tolerance) {
  expect_within(actual, expected, 2 * tolerance);
}

/// Returns the tolerance of sums of `terms` products of numbers in [-1, 1], before they are rounded
/// to the tensor's elements.
///
/// The reference is the definition in double, so all of the tolerance is for the device.
/// - fp32 sums in float: sum_tolerance().
/// - bf16: products are exact in float, but tensor cores truncate sums instead of rounding them.
///   Errors are twice as large and have one sign: four times the tolerance.
/// - TF32 has 10 fraction bits and may truncate, so that a factor errs by up to 2^-10 and a product
///   by 2^-9, about 2^-10 in the root mean square. The n products, 1/3 each in the root mean
///   square, err together by sqrt(n) / 3 * 2^-10 for random signs, and as much again for the common
///   direction. Six times that covers the worst of many sums. The error of the sums is small beside
///   that.
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
