#include "um/cuda/copy_space.h"

#include <gtest/gtest.h>

#include <future>
#include <numeric>

#include "tests/um/cuda/recording_api.h"
#include "um/cuda/cuda_device.h"
#include "um/error.h"

namespace spillway::um {
namespace {

using Log = std::vector<std::string>;

// Near memory of 32 MiB, far memory of 8 MiB.
class CudaCopySpaceTest : public ::testing::Test {
 protected:
  CudaCopySpaceTest() { static_cast<void>(api.take_log()); }
  ~CudaCopySpaceTest() override { api.let_go(); }

  [[nodiscard]] Completion into(std::promise<std::exception_ptr>& ended) {
    return [&](std::exception_ptr failure) { ended.set_value(std::move(failure)); };
  }
  void fill_near() {
    unsigned value = 0;
    for (std::byte& each : space.near()) {
      value = (value * 5 + 7) % 251;
      each = static_cast<std::byte>(value);
    }
  }

  RecordingApi api;
  DeviceMemory device{api};
  PinnedMemory pinned{api};
  CudaCopySpace space{api, device, pinned, {.size = 8_MiB, .near = 32_MiB}};
};

TEST_F(CudaCopySpaceTest, CopiesOnAStreamForEachDirectionAndEndsWhenTheEventHasFired) {
  api.hold();
  std::promise<std::exception_ptr> out;
  std::promise<std::exception_ptr> in;
  space.copies().offload(space.near().first(2U << 20U), 2_MiB, into(out));
  api.wait_until_noted("copy out: record");
  space.copies().prefetch(4_MiB, space.near().subspan(4U << 20U, 4096), into(in));
  api.wait_until_noted("copy in: record");
  EXPECT_EQ(api.take_log(), (Log{"copy out: copy device 0+1 to pinned 1", "copy out: record",
                                 "copy in: copy pinned 2+4096 B to device 2", "copy in: record"}));
  EXPECT_EQ(space.counters().bytes_offloaded, 0_B);
  api.finish("copy in");
  EXPECT_EQ(in.get_future().get(), nullptr);
  api.finish("copy out");
  EXPECT_EQ(out.get_future().get(), nullptr);
}

TEST_F(CudaCopySpaceTest, TellsTheCompletionWhenACopyFails) {
  api.fail("copy out", cudaErrorInvalidValue);
  std::promise<std::exception_ptr> out;
  space.copies().offload(space.near().first(4096), 0_MiB, into(out));
  EXPECT_THROW(std::rethrow_exception(out.get_future().get()), CudaError);
  EXPECT_EQ(space.counters().bytes_offloaded, 0_B);
}

TEST_F(CudaCopySpaceTest, SlidesByLittleWithADetourAndByMuchWithout) {
  const Range spare = space.near().last(2U << 20U);
  for (const std::size_t distance : {std::size_t{4096}, std::size_t{10} << 20U}) {
    fill_near();
    const std::vector<std::byte> before(space.near().begin(), space.near().end());
    static_cast<void>(api.take_log());
    const std::size_t size = 20U << 20U;
    space.copies().slide(space.near().subspan(distance, size), space.near().data(), spare);
    EXPECT_TRUE(std::equal(before.begin() + static_cast<std::ptrdiff_t>(distance),
                           before.begin() + static_cast<std::ptrdiff_t>(distance + size),
                           space.near().begin()));
    api.touch(space.near(), Access::kWrite);  // the copies have ended
    // 10 times 2 MiB, twice each; or 10 + 10 MiB.
    EXPECT_EQ(api.take_log().size(), distance == 4096 ? 20U : 2U);
  }
}

TEST_F(CudaCopySpaceTest, SlidesByTheDistanceWhereNothingIsSpare) {
  fill_near();
  const std::vector<std::byte> before(space.near().begin(), space.near().end());
  static_cast<void>(api.take_log());
  space.copies().slide(space.near().subspan(4096, 10240), space.near().data(), {});
  EXPECT_TRUE(
      std::equal(before.begin() + 4096, before.begin() + 4096 + 10240, space.near().begin()));
  EXPECT_EQ(api.take_log().size(), 3U);  // 4096 + 4096 + 2048 bytes
}

// Its end comes after the pieces before the one that failed.
TEST(CudaCopySpace, ASlideThatFailsHalfwayEndsBeforeTheMemoryGoes) {
  RecordingApi api;
  DeviceMemory device{api};
  PinnedMemory pinned{api};
  CudaCopySpace space{api, device, pinned, {.size = 2_MiB, .near = 8_MiB}};
  api.fail("copy slide: copy device 2+1", cudaErrorInvalidValue);
  EXPECT_THROW(space.copies().slide(space.near().subspan((2_MiB).count(), (4_MiB).count()),
                                    space.near().data(), {}),
               CudaError);
}

TEST_F(CudaCopySpaceTest, TakesNoMoreNearMemoryThanWasAskedFor) {
  CudaCopySpace{api, device, pinned, {.size = 8_MiB, .near = 32_MiB}};
  const Log log = api.take_log();
  EXPECT_EQ(std::ranges::count(log, "allocate device 32.0 MiB"), 1);
  EXPECT_EQ(std::ranges::count_if(
                log, [](const std::string& line) { return line.starts_with("allocate device"); }),
            1);
}

}  // namespace
}  // namespace spillway::um
