#include <cuda_runtime_api.h>

#include <string>

#include "src/cuda/kernels/kernels.h"
#include "src/cuda/kernels/launch.cuh"
#include "um/cuda/driver/check.h"
#include "um/error.h"

namespace spillway::cuda {
namespace {

__global__ void do_nothing() {}

__global__ void add_all(float* to, const float* numbers, std::size_t count) {
  for (std::size_t i = first_item(); i < count; i += item_stride()) to[i] += numbers[i];
}

__global__ void divide_all(float* numbers, float by, std::size_t count) {
  for (std::size_t i = first_item(); i < count; i += item_stride()) numbers[i] /= by;
}

__global__ void fill_all(float* numbers, float value, std::size_t count) {
  for (std::size_t i = first_item(); i < count; i += item_stride()) numbers[i] = value;
}

}  // namespace

void expect_kernels_for_this_gpu(const um::CudaFacts& facts) {
  cudaFuncAttributes attributes{};
  const cudaError_t status =
      cudaFuncGetAttributes(&attributes, reinterpret_cast<const void*>(&do_nothing));
  if (status == cudaErrorNoKernelImageForDevice || status == cudaErrorInvalidDeviceFunction) {
    (void)cudaGetLastError();
    const std::string architecture = std::to_string(facts.compute_capability);
    throw um::Error{"its kernels were compiled for other GPUs than this " + facts.name +
                    "; build with -DCMAKE_CUDA_ARCHITECTURES=" + architecture +
                    ", or use --device host"};
  }
  um::check(status);
}

void add_numbers(cudaStream_t stream, float* to, const float* numbers, std::size_t count) {
  launch(stream, count, add_all, to, numbers, count);
}

void divide_numbers(cudaStream_t stream, float* numbers, float by, std::size_t count) {
  launch(stream, count, divide_all, numbers, by, count);
}

void fill_numbers(cudaStream_t stream, float* numbers, float value, std::size_t count) {
  launch(stream, count, fill_all, numbers, value, count);
}

}  // namespace spillway::cuda
