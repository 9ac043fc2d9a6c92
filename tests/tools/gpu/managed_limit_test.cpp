#include "tools/gpu/managed_limit.h"

#include <gtest/gtest.h>

#include "um/cuda/managed/managed_room.h"
#include "um/error.h"

namespace spillway::gpu {
namespace {

using namespace um::literals;

TEST(ManagedLimit, IsAQuarterOfASmallGpu) { EXPECT_EQ(um::shared_gpu_limit(8_GiB), 2_GiB); }

TEST(ManagedLimit, Is16GiBOnALargeOne) {
  EXPECT_EQ(um::shared_gpu_limit(64_GiB), 16_GiB);
  EXPECT_EQ(um::shared_gpu_limit(140_GiB), 16_GiB);
}

TEST(ManagedLimit, RefusesWhatTheGpuHasNoRoomFor) {
  EXPECT_NO_THROW(expect_within_limit(1_GiB, 4_GiB));
  EXPECT_THROW(expect_within_limit(1_GiB + 1_B, 4_GiB), um::Error);
}

}  // namespace
}  // namespace spillway::gpu
