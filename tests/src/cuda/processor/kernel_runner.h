#pragma once

#include "tests/src/cuda/operation_runner.h"

namespace spillway::cuda {

/// Runs our kernels on the CPU, for tests of operations.
class KernelRunner : public OperationRunner {};

}  // namespace spillway::cuda
