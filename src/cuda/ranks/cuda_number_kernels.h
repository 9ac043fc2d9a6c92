#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>

#include "src/cuda/ranks/device_communicator.h"
#include "src/ranks/communicator.h"

namespace spillway::cuda {

/// NumberKernels for GPU memory, enqueued on a stream.
class CudaNumberKernels final : public NumberKernels {
 public:
  /// Requires: `stream` outlives this object.
  explicit CudaNumberKernels(const ExchangeStream& stream) : stream_{stream} {}

  void add(std::span<float> to, std::span<const float> numbers) const override;
  void copy(std::span<float> to, std::span<const float> from) const override;
  void divide(std::span<float> numbers, float by) const override;
  void fill(std::span<float> numbers, float value) const override;

 private:
  const ExchangeStream& stream_;
};

// Device kernels of CudaNumberKernels. Each enqueues, and requires only the alignment of a float.

/// to[i] += numbers[i]
void add_numbers(cudaStream_t stream, float* to, const float* numbers, std::size_t count);
/// numbers[i] /= by
void divide_numbers(cudaStream_t stream, float* numbers, float by, std::size_t count);
void fill_numbers(cudaStream_t stream, float* numbers, float value, std::size_t count);

}  // namespace spillway::cuda
