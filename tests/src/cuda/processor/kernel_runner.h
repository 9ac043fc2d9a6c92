#pragma once

#include "tests/src/cuda/operation_runner.h"

namespace spillway::cuda {

/// What tests of operations run kernels of ours with, on the processor.
class KernelRunner : public OperationRunner {};

}  // namespace spillway::cuda
