#pragma once

// Selects the backend for the tests of operations, which are written only once. It is CUDA's if
// SPILLWAY_KERNELS_OF_CUDA is defined, CUDA's kernels on the CPU if SPILLWAY_KERNELS_ON_PROCESSOR
// is defined, otherwise the host's.

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

/// Returns true if a numeric_gradient() with respect to `values` takes negligible time.
[[nodiscard]] inline bool are_few(const Values& values) { return values.size() <= 1000; }

/// Returns the cases for the tested backend, if its layouts and algorithms need different ones.
template <class Case>
[[nodiscard]] std::vector<Case> of_backend(std::vector<Case> host, std::vector<Case> cuda) {
  return kIsCuda ? cuda : host;
}

}  // namespace spillway::test
