#pragma once

// What the tests of operations, each written once, run their kernels with: the host's backend, or
// CUDA's where SPILLWAY_KERNELS_OF_CUDA is defined.

#include "tests/src/host/naive_layers.h"
#include "tests/src/host/numeric_gradient.h"
#ifdef SPILLWAY_KERNELS_OF_CUDA
#include "tests/src/cuda/kernel_runner.h"
#else
#include "tests/src/host/kernel_runner.h"
#endif

namespace spillway::test {

using host::channel_of;
using host::dot;
using host::naive_pool;
using host::naive_relu;
using host::numeric_gradient;
using host::place;
using host::sum_tolerance;
using host::to_floats;
using host::Values;
#ifdef SPILLWAY_KERNELS_OF_CUDA
using cuda::expect_near;
using cuda::has_float_tensors;
using cuda::KernelRunner;
using cuda::random_values;
using cuda::rounded;
using Block = cuda::Operand;
#else
using host::Block;
using host::expect_near;
using host::has_float_tensors;
using host::KernelRunner;
using host::random_values;
using host::rounded;
#endif

}  // namespace spillway::test
