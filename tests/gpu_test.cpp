#include "tests/gpu.h"

#include <gtest/gtest.h>

namespace spillway::testing {
namespace {

using namespace um::literals;

TEST(GpuState, IsAbsentWithoutADriverOrADevice) {
  EXPECT_EQ(gpu_state(cudaErrorInsufficientDriver, 0), GpuState::kAbsent);
  EXPECT_EQ(gpu_state(cudaErrorNoDevice, 0), GpuState::kAbsent);
  EXPECT_EQ(gpu_state(cudaSuccess, 0), GpuState::kAbsent);
}

TEST(GpuState, IsFaultyWhenADeviceRefuses) {
  EXPECT_EQ(gpu_state(cudaErrorECCUncorrectable, 1), GpuState::kFaulty);
  EXPECT_EQ(gpu_state(cudaErrorInitializationError, 0), GpuState::kFaulty);
}

TEST(GpuState, IsPresentWhenADeviceAnswers) {
  EXPECT_EQ(gpu_state(cudaSuccess, 1), GpuState::kPresent);
}

TEST(ManagedLimit, IsAQuarterOfWhatIsFreeAndAtMostSixteenGibibytes) {
  EXPECT_EQ(managed_limit(0_B), 0_B);
  EXPECT_EQ(managed_limit(40_GiB), 10_GiB);
  EXPECT_EQ(managed_limit(140_GiB), 16_GiB);  // a quarter would be 35 GiB
}

}  // namespace
}  // namespace spillway::testing
