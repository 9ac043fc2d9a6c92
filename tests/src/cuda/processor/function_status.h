#pragma once

#include <cuda_runtime_api.h>

namespace spillway::processor {

/// Sets the result of all later calls of cudaFuncGetAttributes().
void set_function_status(cudaError_t status);

}  // namespace spillway::processor
