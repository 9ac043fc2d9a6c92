#pragma once

#include <cuda_runtime_api.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <string_view>

#include "um/bytes.h"

namespace spillway::testing {

/// What the machine has: no device, one that answers, or one that is there and refuses.
enum class GpuState { kAbsent, kPresent, kFaulty };

/// Classifies the answer of cudaGetDeviceCount().
[[nodiscard]] inline GpuState gpu_state(cudaError_t status, int count) {
  if (status == cudaErrorNoDevice || status == cudaErrorInsufficientDriver ||
      (status == cudaSuccess && count == 0))
    return GpuState::kAbsent;
  return status == cudaSuccess ? GpuState::kPresent : GpuState::kFaulty;
}

/// To be called by SetUp() of a test that needs a device. No device: the test is skipped, or fails
/// when the environment says SPILLWAY_REQUIRE_GPU=1. A device that is there and faulty always
/// fails.
inline void require_gpu() {
  int count = 0;
  const cudaError_t status = cudaGetDeviceCount(&count);
  switch (gpu_state(status, count)) {
    case GpuState::kAbsent: {
      const char* require = std::getenv("SPILLWAY_REQUIRE_GPU");
      if (require != nullptr && std::string_view{require} == "1")
        FAIL() << "SPILLWAY_REQUIRE_GPU=1, but there is no usable CUDA device: "
               << cudaGetErrorString(status);
      GTEST_SKIP() << "no CUDA device";
    }
    case GpuState::kFaulty:
      FAIL() << "the CUDA device is faulty: " << cudaGetErrorString(status);
    case GpuState::kPresent:
      // cudaFree() makes the context, which a faulty device cannot.
      ASSERT_EQ(cudaFree(nullptr), cudaSuccess) << "the CUDA device is faulty";
  }
}

/// The most unified memory that tests take of a GPU where so much is free: page faults that evict
/// have been seen to hang one.
[[nodiscard]] inline um::Bytes managed_limit(um::Bytes free) {
  return std::min(um::Bytes{16ULL << 30U}, um::Bytes{free.count() / 4});
}

/// Fixture of the tests that need a device.
class GpuTest : public ::testing::Test {
 protected:
  void SetUp() override { require_gpu(); }

  /// The most managed memory a test may ask for now.
  [[nodiscard]] static um::Bytes managed_limit_now() {
    std::size_t free = 0;
    std::size_t total = 0;
    EXPECT_EQ(cudaMemGetInfo(&free, &total), cudaSuccess);
    return managed_limit(um::Bytes{free});
  }
};

}  // namespace spillway::testing
