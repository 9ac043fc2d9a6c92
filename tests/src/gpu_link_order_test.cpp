// What measures a GPU's link, on a driver that finds what has no order.

#include <gtest/gtest.h>

#include <memory>

#include "src/bench/link/managed_halves.h"
#include "src/profile/loaded_link.h"
#include "tests/um/cuda/recording_api.h"
#include "um/cuda/cuda_device.h"

namespace spillway {
namespace {

using namespace um::literals;

// Near memory is made beside the streams of the moves, which do not wait for it.
TEST(GpuLinkOrder, TheFirstMoveComesAfterTheRoomForIt) {
  um::CudaDevice device{std::make_unique<um::RecordingApi>(), {}};
  const auto link = make_link_under_test(device, MemoryMode::kManaged, {.page = 2_MiB}, 4_MiB);
  const LinkUnderTest::Part first{.offset = 0_B, .size = 2_MiB};
  const LinkUnderTest::Part second{.offset = 2_MiB, .size = 2_MiB};
  link->move_away(first);
  link->exchange(second, first);
  link->move_back(second);
}

TEST(GpuLinkOrder, AHalfThatIsPutFarHasBeenNear) {
  um::CudaDevice device{std::make_unique<um::RecordingApi>(), {}};
  ManagedHalves halves{device, 4_MiB, 1, {}};
  halves.put_far(0);
  halves.put_near(1);
  halves.drop(1);
  halves.put_near(0);
}

}  // namespace
}  // namespace spillway
