#include <cuda_runtime_api.h>

#include <string>

#include "src/cuda/kernels/launch.h"
#include "um/cuda/driver/check.h"
#include "um/error.h"

namespace spillway::cuda {
namespace {

__global__ void do_nothing() {}

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

}  // namespace spillway::cuda
