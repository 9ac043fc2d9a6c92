#include <gtest/gtest.h>

#include <string>

#include "src/cuda/kernels/kernels.h"
#include "tests/src/cuda/processor/function_status.h"
#include "um/cuda/driver/check.h"

namespace spillway::cuda {
namespace {

class KernelCheck : public ::testing::Test {
 protected:
  ~KernelCheck() override { processor::set_function_status(cudaSuccess); }
  const um::CudaFacts facts_{.name = "NVIDIA A100", .compute_capability = 80};
};

TEST_F(KernelCheck, PassesWhereTheDeviceTakesTheKernels) {
  EXPECT_NO_THROW(expect_kernels_for_this_gpu(facts_));
}

TEST_F(KernelCheck, SaysWhatToBuildForAnotherGpu) {
  for (const cudaError_t status :
       {cudaErrorNoKernelImageForDevice, cudaErrorInvalidDeviceFunction}) {
    processor::set_function_status(status);
    try {
      expect_kernels_for_this_gpu(facts_);
      FAIL() << "refuses kernels for other GPUs";
    } catch (const um::CudaError& error) {
      FAIL() << error.what();
    } catch (const um::Error& error) {
      const std::string what = error.what();
      EXPECT_NE(what.find("than this NVIDIA A100"), std::string::npos) << what;
      EXPECT_NE(what.find("-DCMAKE_CUDA_ARCHITECTURES=80"), std::string::npos) << what;
    }
  }
}

TEST_F(KernelCheck, LetsOtherFailuresThrough) {
  processor::set_function_status(cudaErrorInvalidValue);
  EXPECT_THROW(expect_kernels_for_this_gpu(facts_), um::CudaError);
}

}  // namespace
}  // namespace spillway::cuda
