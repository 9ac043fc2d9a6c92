#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>

namespace spillway::cuda {

// Sums of ranks over numbers in a device's memory: NumberKernels of src/ranks/communicator.h. Each
// function enqueues, and requires only the alignment of a float.

/// to[i] += numbers[i]
void add_numbers(cudaStream_t stream, float* to, const float* numbers, std::size_t count);
/// numbers[i] /= by
void divide_numbers(cudaStream_t stream, float* numbers, float by, std::size_t count);
void fill_numbers(cudaStream_t stream, float* numbers, float value, std::size_t count);

}  // namespace spillway::cuda
