#include <cuda_runtime_api.h>
#include <gtest/gtest.h>

#include "tests/gpu.h"
#include "um/cuda/driver/check.h"

namespace spillway::um {
namespace {

class CheckOnADevice : public testing::GpuTest {};

TEST_F(CheckOnADevice, DoesNotBlameTheNextCall) {
  EXPECT_THROW(check(cudaSetDevice(-1)), CudaError);
  EXPECT_EQ(cudaPeekAtLastError(), cudaSuccess);
}

}  // namespace
}  // namespace spillway::um
