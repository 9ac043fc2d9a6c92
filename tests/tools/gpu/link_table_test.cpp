#include "tools/gpu/link_table.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "tests/um/cuda/recording_api.h"
#include "um/cuda/device_memory.h"
#include "um/cuda/pinned_memory.h"
#include "um/error.h"

namespace spillway::gpu {
namespace {

using namespace um::literals;
using nlohmann::json;
using um::Bytes;

class LinkTable : public ::testing::Test {
 protected:
  json measure(um::CudaManagedMemory* managed) {
    return measure_links(api_, {.device = device_, .pinned = pinned_, .managed = managed}, timer_,
                         {.sizes = {2_MiB, 4_MiB}, .repeats = 3});
  }
  std::ptrdiff_t times(const std::string& line) {
    const std::vector<std::string> log = api_.take_log();
    return std::ranges::count(log, line);
  }

  um::RecordingApi api_;
  um::DeviceMemory device_{api_};
  um::PinnedMemory pinned_{api_};
  BusyWork work_{api_, device_, 2_MiB};
  MoveTimer timer_{api_, work_};
};

TEST_F(LinkTable, HasALineForEachMemorySizeStreamAndWay) {
  um::CudaManagedMemory managed{api_, 16_GiB};
  const json lines = measure(&managed);
  ASSERT_EQ(lines.size(), 3U * 2 * 2 * 2);  // pinned, pageable, managed
  EXPECT_EQ(lines[0].at("memory"), "pinned");
  EXPECT_EQ(lines[0].at("way"), "in");
  EXPECT_EQ(lines[0].at("size_bytes"), (2_MiB).count());
  EXPECT_EQ(lines[0].at("stream"), "idle");
  EXPECT_EQ(lines[0].at("bytes_per_second").at("count"), 3);
  EXPECT_EQ(lines[3].at("way"), "out");
  EXPECT_EQ(lines[3].at("stream"), "behind work");
  EXPECT_EQ(lines.back().at("memory"), "managed");
}

TEST_F(LinkTable, MovesUnifiedMemoryInAndOutInTurn) {
  um::CudaManagedMemory managed{api_, 16_GiB};
  static_cast<void>(measure(&managed));
  // Two streams, idle and busy: each warms up once and repeats three times.
  EXPECT_EQ(times("moves: prefetch near slab 0+1"), 2 * (1 + 3));
}

TEST_F(LinkTable, LeavesUnifiedMemoryOutWhereThereIsNone) {
  EXPECT_EQ(measure(nullptr).size(), 2U * 2 * 2 * 2);
}

TEST_F(LinkTable, TakesNoUnifiedMemoryBeyondTheLimit) {
  um::CudaManagedMemory managed{api_, 2_MiB};
  EXPECT_THROW(static_cast<void>(measure(&managed)), um::Error);
  EXPECT_EQ(times("allocate slab 4.00 MiB"), 0);
}

}  // namespace
}  // namespace spillway::gpu
