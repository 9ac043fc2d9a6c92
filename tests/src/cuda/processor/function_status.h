#pragma once

#include <cuda_runtime_api.h>

namespace spillway::processor {

/// What cudaFuncGetAttributes() answers from now on.
void set_function_status(cudaError_t status);

}  // namespace spillway::processor
