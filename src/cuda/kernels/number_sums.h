#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>

namespace spillway::cuda {

// What ranks compute with numbers in a device's memory, as src/ranks/communicator.h says. Each
// enqueues, and needs no alignment but a float's.

/// to[i] += numbers[i]
void add_numbers(cudaStream_t stream, float* to, const float* numbers, std::size_t count);
/// numbers[i] /= by
void divide_numbers(cudaStream_t stream, float* numbers, float by, std::size_t count);
void fill_numbers(cudaStream_t stream, float* numbers, float value, std::size_t count);

}  // namespace spillway::cuda
