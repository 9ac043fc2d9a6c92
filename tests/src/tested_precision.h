#pragma once

#include <cmath>
#include <cstdlib>

#include "src/ops/tensor.h"
#include "tests/src/host/kernel_runner.h"

namespace spillway::test {

using host::Values;

/// The one that SPILLWAY_TEST_PRECISION names; fp32 without.
[[nodiscard]] inline Precision tested_precision() {
  const char* const name = std::getenv("SPILLWAY_TEST_PRECISION");
  return name == nullptr ? Precision::kFp32 : find_precision(name).value();
}
[[nodiscard]] inline bool is_bf16() { return tested_precision() == Precision::kBf16; }

/// As tensors of the tested precision hold them.
[[nodiscard]] inline Values rounded(Values values) {
  if (!is_bf16()) return values;
  for (double& v : values) v = static_cast<double>(float{Bfloat16{static_cast<float>(v)}});
  return values;
}
[[nodiscard]] inline Values random_values(std::size_t count, unsigned seed) {
  return rounded(host::random_values(count, seed));
}

/// Whether tensors hold what a float does: no two drawn numbers of a window are equal.
[[nodiscard]] inline bool has_float_tensors() { return !is_bf16(); }

/// Fails the test unless each value is within `tolerance` of the expected one. A bfloat16 has 8
/// bits: rounding to the nearest errs by up to 2^-9 of the next power of two, 2^-8 of the number
/// itself. What has no tolerance is rounded once.
inline void expect_within(const Values& actual, const Values& expected, double tolerance) {
  if (tolerance == 0) {
    EXPECT_EQ(actual, rounded(expected));
    return;
  }
  ASSERT_EQ(actual.size(), expected.size());
  for (std::size_t i = 0; i < actual.size(); ++i) {
    const double rounding = is_bf16() ? std::ldexp(std::abs(expected[i]) + tolerance, -8) : 0;
    ASSERT_NEAR(actual[i], expected[i], tolerance + rounding) << "at " << i;
  }
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

}  // namespace spillway::test
