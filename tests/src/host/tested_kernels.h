#pragma once

#include "tests/src/host/kernel_runner.h"
#include "tests/src/tested_precision.h"

/// Names that tests of operations use on the host, in the tested precision.
namespace spillway::host_tested {

using host::Block;

inline constexpr bool kIsCuda = false;

class KernelRunner : public host::KernelRunner {
 protected:
  KernelRunner() : host::KernelRunner{is_there() ? test::tested_precision() : Precision::kFp32} {}
  void SetUp() override {
    if (!is_there()) GTEST_SKIP() << "this processor does not compute in bf16";
  }

 private:
  static bool is_there() {
    return !test::is_bf16() || host::bf16_support() != host::Bf16Support::kNone;
  }
};

inline void expect_near(const host::Values& actual, const host::Values& expected,
                        double tolerance) {
  test::expect_within(actual, expected, tolerance);
}

/// Returns the tolerance of sums of `terms` products of numbers in [-1, 1], before they are rounded
/// to the tensor's elements. Products of bfloat16 are exact in float, in which they are summed.
[[nodiscard]] inline double product_tolerance(std::size_t terms) {
  return host::sum_tolerance(terms);
}

}  // namespace spillway::host_tested
