#include "src/cuda/ranks/cuda_number_kernels.h"

#include "src/cuda/kernels/number_sums.h"

namespace spillway::cuda {

void CudaNumberKernels::add(std::span<float> to, std::span<const float> numbers) const {
  add_numbers(stream_.enter(), to.data(), numbers.data(), to.size());
}

void CudaNumberKernels::copy(std::span<float> to, std::span<const float> from) const {
  stream_.copy(std::as_bytes(from), reinterpret_cast<std::byte*>(to.data()));
}

void CudaNumberKernels::divide(std::span<float> numbers, float by) const {
  divide_numbers(stream_.enter(), numbers.data(), by, numbers.size());
}

void CudaNumberKernels::fill(std::span<float> numbers, float value) const {
  fill_numbers(stream_.enter(), numbers.data(), value, numbers.size());
}

}  // namespace spillway::cuda
