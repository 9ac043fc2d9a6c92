#pragma once

// What the tests of operations, each written once, run their kernels with: the host's backend;
// CUDA's where SPILLWAY_KERNELS_OF_CUDA is defined; CUDA's kernels on the processor where
// SPILLWAY_KERNELS_ON_PROCESSOR is.

#include "tests/src/host/naive_layers.h"
#include "tests/src/host/numeric_gradient.h"
#if defined(SPILLWAY_KERNELS_OF_CUDA)
#include "tests/src/cuda/kernel_runner.h"
#elif defined(SPILLWAY_KERNELS_ON_PROCESSOR)
#include "tests/src/cuda/processor/kernel_runner.h"
#else
#include "tests/src/host/tested_kernels.h"
#endif

namespace spillway::test {

#if defined(SPILLWAY_KERNELS_OF_CUDA) || defined(SPILLWAY_KERNELS_ON_PROCESSOR)
namespace tested = cuda;
#else
namespace tested = host_tested;
#endif

using host::channel_of;
using host::dot;
using host::for_each_product;
using host::naive_batch_norm;
using host::naive_cross_entropy;
using host::naive_pool;
using host::naive_relu;
using host::naive_statistics;
using host::naive_sums;
using host::numeric_gradient;
using host::output_shape;
using host::place;
using host::sum_tolerance;
using host::to_floats;
using host::Values;
using tested::Block;
using tested::expect_near;
using tested::KernelRunner;
using tested::kIsCuda;
using tested::product_tolerance;

/// Whether a numeric_gradient() by these costs a test no time to speak of.
[[nodiscard]] inline bool are_few(const Values& values) { return values.size() <= 1000; }

/// The cases of the backend under test, where its layouts and algorithms ask for some of their own.
template <class Case>
[[nodiscard]] std::vector<Case> of_backend(std::vector<Case> host, std::vector<Case> cuda) {
  return kIsCuda ? cuda : host;
}

}  // namespace spillway::test
