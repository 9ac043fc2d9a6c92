#pragma once

#include "tests/src/host/kernel_runner.h"
#include "tests/src/tested_precision.h"

/// What tests of operations take where they run on the host, in the tested precision.
namespace spillway::host_tested {

using host::Block;

inline constexpr bool kIsCuda = false;

class KernelRunner : public host::KernelRunner {
 protected:
  KernelRunner() : host::KernelRunner{test::tested_precision()} {}
};

inline void expect_near(const host::Values& actual, const host::Values& expected,
                        double tolerance) {
  test::expect_within(actual, expected, tolerance);
}

/// The same of what a layer with weights sums. Products of bfloat16 are exact in float, in which
/// they are summed.
[[nodiscard]] inline double product_tolerance(std::size_t terms) {
  return host::sum_tolerance(terms);
}

}  // namespace spillway::host_tested
