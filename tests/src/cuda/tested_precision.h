#pragma once

#include <cmath>
#include <cstdlib>

#include "src/cuda/layout/bfloat16.h"
#include "src/ops/precision.h"
#include "tests/src/host/kernel_runner.h"

namespace spillway::cuda {

using host::Values;

inline constexpr bool kIsCuda = true;

/// The one that SPILLWAY_TEST_PRECISION names; fp32 without.
[[nodiscard]] inline Precision tested_precision() {
  const char* const name = std::getenv("SPILLWAY_TEST_PRECISION");
  return name == nullptr ? Precision::kFp32 : find_precision(name).value();
}
[[nodiscard]] inline bool is_bf16() { return tested_precision() == Precision::kBf16; }

/// As tensors of the tested precision hold them.
[[nodiscard]] inline Values rounded(Values values) {
  if (!is_bf16()) return values;
  for (double& v : values) v = static_cast<double>(to_float(to_bfloat16(static_cast<float>(v))));
  return values;
}
[[nodiscard]] inline Values random_values(std::size_t count, unsigned seed) {
  return rounded(host::random_values(count, seed));
}

/// Whether tensors hold what a float does: no two drawn numbers of a window are equal.
[[nodiscard]] inline bool has_float_tensors() { return !is_bf16(); }

/// Fails the test unless each value is within `tolerance` of the expected one. A bfloat16 has 8
/// bits: rounding to the nearest errs by up to 2^-9 of the next power of two, 2^-8 of the number
/// itself.
inline void expect_within(const Values& actual, const Values& expected, double tolerance) {
  ASSERT_EQ(actual.size(), expected.size());
  for (std::size_t i = 0; i < actual.size(); ++i) {
    const double rounding = is_bf16() ? std::ldexp(std::abs(expected[i]) + tolerance, -8) : 0;
    ASSERT_NEAR(actual[i], expected[i], tolerance + rounding) << "at " << i;
  }
}
/// Likewise, where `tolerance` covers the float arithmetic of the host: twice that here, as powers
/// and exponentials err by more on a device. What has no tolerance is rounded once.
inline void expect_near(const Values& actual, const Values& expected, double tolerance) {
  if (tolerance == 0) {
    EXPECT_EQ(actual, rounded(expected));
  } else {
    expect_within(actual, expected, 2 * tolerance);
  }
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

/// Fails the test unless `actual` is within `tolerance`, and with bfloat16 two roundings (of the
/// product, and with the bias added, which is at most 1), of `expected`.
inline void expect_products(const Values& actual, const Values& expected, double tolerance) {
  ASSERT_EQ(actual.size(), expected.size());
  for (std::size_t i = 0; i < actual.size(); ++i) {
    const double size = 2 * std::abs(expected[i]) + 1 + tolerance;
    const double rounding = is_bf16() ? std::ldexp(size, -8) : 0;
    ASSERT_NEAR(actual[i], expected[i], tolerance + rounding) << "at " << i;
  }
}

}  // namespace spillway::cuda
