#include "src/bench/link/transfer.h"

#include <gtest/gtest.h>

#include <array>

#include "tests/temporary_folder.h"
#include "tests/um/hosted_device.h"
#include "um/error.h"

namespace spillway::test {
namespace {

using namespace um::literals;

constexpr std::array kDirections{Direction::kIn, Direction::kOut, Direction::kBoth};

// What the managed space moves in the second of two moves alike: the first may have to make
// content that later ones find.
um::Counters moved(Way way, Direction direction, um::Bytes size) {
  WatchedDevice device;
  const auto transfer = make_transfer(device, way, size, {});
  transfer->prepare(direction);
  static_cast<void>(transfer->move(direction));
  transfer->prepare(direction);
  const um::Counters before = device.counters();
  static_cast<void>(transfer->move(direction));
  return device.counters() - before;
}

// Of so many bytes.
class ManagedTransfer : public testing::TestWithParam<std::uint64_t> {};

TEST_P(ManagedTransfer, MovesAsMuchAsAskedForInItsDirections) {
  for (const Way way : {Way::kFault, Way::kPrefetch}) {
    for (const Direction direction : kDirections) {
      SCOPED_TRACE(to_string(way) + " " + to_string(direction));
      const um::Bytes size{GetParam()};
      const um::Counters counters = moved(way, direction, size);
      EXPECT_EQ(counters.bytes_prefetched, direction == Direction::kOut ? 0_B : size);
      EXPECT_EQ(counters.bytes_offloaded, direction == Direction::kIn ? 0_B : size);
    }
  }
}

// 4 KiB and 2 MiB are one page, but near memory holds two; 8 MiB are four.
INSTANTIATE_TEST_SUITE_P(Sizes, ManagedTransfer,
                         testing::Values((4_KiB).count(), (2_MiB).count(), (8_MiB).count()),
                         testing::PrintToStringParamName());

TEST(Transfer, FaultsOncePerPageOnlyWherePagesAreTouched) {
  EXPECT_EQ(moved(Way::kFault, Direction::kIn, 8_MiB).faults, 4U);
  EXPECT_EQ(moved(Way::kFault, Direction::kOut, 8_MiB).faults, 4U);
  EXPECT_EQ(moved(Way::kPrefetch, Direction::kBoth, 8_MiB).faults, 0U);
}

TEST(Transfer, TakesTimeInEveryWayAndDirection) {
  const TemporaryFolder folder;
  WatchedDevice device;
  um::ManagedOptions space;
  space.far.file = folder.path();
  for (const char* name : {"fault", "prefetch", "pageable_copy", "pinned_copy", "file"}) {
    const auto transfer = make_transfer(device, find_way(name).value(), 64_KiB, space);
    for (const Direction direction : kDirections) {
      transfer->prepare(direction);
      const TransferTime time = transfer->move(direction);

      EXPECT_GT(time.whole.count(), 0) << name << " " << to_string(direction);
      EXPECT_GT(time.call.count(), 0) << name << " " << to_string(direction);
    }
  }
}

TEST(Transfer, KeepsFarMemoryInAFileOnlyWhereTheFileIsMeasured) {
  const TemporaryFolder folder;
  WatchedDevice device;
  um::ManagedOptions space;
  space.far.file = folder.path();

  EXPECT_NE(make_transfer(device, Way::kFile, 4_KiB, space)->description().find("far file in "),
            std::string::npos);
  EXPECT_EQ(make_transfer(device, Way::kPinnedCopy, 4_KiB, space)->description(), "far RAM");
}

TEST(Transfer, MovesPowersOfTwoFromOnePageOn) {
  WatchedDevice device;
  for (const um::Bytes size : {0_B, 2_KiB, 12_KiB}) {
    EXPECT_THROW(static_cast<void>(make_transfer(device, Way::kPinnedCopy, size, {})),
                 um::ContractError);
  }
}

TEST(Transfer, OnAGpuIsWhatSpillwayCanDoThere) {
  WatchedDevice gpu;
  gpu.is_gpu = true;

  EXPECT_TRUE(why_not(gpu, Way::kFault, Direction::kIn, 4_MiB));
  EXPECT_FALSE(why_not(gpu, Way::kFile, Direction::kIn, 4_MiB));
  EXPECT_TRUE(why_not(gpu, Way::kPrefetch, Direction::kIn, 1_MiB));
  EXPECT_FALSE(why_not(gpu, Way::kPrefetch, Direction::kIn, 2_MiB));
  EXPECT_TRUE(why_not(gpu, Way::kPageableCopy, Direction::kBoth, 4_MiB));
  EXPECT_FALSE(why_not(gpu, Way::kPageableCopy, Direction::kOut, 4_MiB));
  EXPECT_FALSE(why_not(gpu, Way::kPinnedCopy, Direction::kBoth, 4_KiB));
  EXPECT_FALSE(why_not(WatchedDevice{}, Way::kFault, Direction::kIn, 4_KiB));
}

TEST(Transfer, OnAGpuWithoutALinkGoesToAFileOnly) {
  WatchedDevice gpu;
  gpu.is_gpu = true;
  gpu.facts = {.moves_by_hints = false};
  EXPECT_TRUE(why_not(gpu, Way::kPrefetch, Direction::kIn, 4_MiB));
  EXPECT_FALSE(why_not(gpu, Way::kPinnedCopy, Direction::kIn, 4_MiB));
  gpu.facts->is_host_ram = true;
  EXPECT_TRUE(why_not(gpu, Way::kPinnedCopy, Direction::kIn, 4_MiB));
  EXPECT_FALSE(why_not(gpu, Way::kFile, Direction::kIn, 4_MiB));
}

TEST(Way, HasTheNameThatBenchFilesGiveIt) {
  EXPECT_EQ(to_string(Way::kFault), "fault");
  EXPECT_EQ(to_string(Way::kPrefetch), "prefetch");
  EXPECT_EQ(to_string(Way::kPageableCopy), "pageable_copy");
  EXPECT_EQ(to_string(Way::kPinnedCopy), "pinned_copy");
  EXPECT_EQ(to_string(Way::kFile), "file");
}

TEST(Way, IsFoundByTheNameThatIsWritten) {
  for (const Way way :
       {Way::kFault, Way::kPrefetch, Way::kPageableCopy, Way::kPinnedCopy, Way::kFile}) {
    EXPECT_EQ(find_way(to_string(way)), way);
  }
  EXPECT_FALSE(find_way("carrier_pigeon"));
}

TEST(Direction, HasTheNameThatBenchFilesGiveIt) {
  EXPECT_EQ(to_string(Direction::kIn), "in");
  EXPECT_EQ(to_string(Direction::kOut), "out");
  EXPECT_EQ(to_string(Direction::kBoth), "both");
}

TEST(Direction, IsFoundByTheNameThatIsWritten) {
  for (const Direction direction : kDirections) {
    EXPECT_EQ(find_direction(to_string(direction)), direction);
  }
  EXPECT_FALSE(find_direction("sideways"));
}

}  // namespace
}  // namespace spillway::test
