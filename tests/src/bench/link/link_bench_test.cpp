#include "src/bench/link/link_bench.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>

#include "src/bench/link/transfer.h"
#include "src/run/executor.h"
#include "tests/src/bench/timing_of.h"
#include "tests/temporary_folder.h"
#include "tests/um/hosted_device.h"
#include "um/error.h"

namespace spillway::test {
namespace {

using namespace um::literals;

LinkRow row_of(Direction direction) {
  return {.way = Way::kPinnedCopy,
          .direction = direction,
          .size = 1_MiB,
          .time = timing_of(0.5),
          .call = timing_of(0.25)};
}

// 2^20 bytes in half a second; both ways move them twice.
TEST(LinkRow, HasTheBandwidthOfAllItMoves) {
  EXPECT_EQ(row_of(Direction::kIn).bytes_per_second(), 2'097'152);
  EXPECT_EQ(row_of(Direction::kBoth).bytes_per_second(), 4'194'304);
}

TEST(LinkRow, HasTheFieldsOfTheFormat) {
  const nlohmann::json json = to_json(row_of(Direction::kBoth));

  EXPECT_EQ(json, (nlohmann::json{{"way", "pinned_copy"},
                                  {"direction", "both"},
                                  {"bytes", 1'048'576},
                                  {"seconds", to_json(timing_of(0.5))},
                                  {"bytes_per_second", 4'194'304.0},
                                  {"call_seconds", to_json(timing_of(0.25))}}));
}

TEST(LinkSizes, GoFromAPageToAGibibyteByFours) {
  const std::vector<um::Bytes> sizes = link_sizes();

  EXPECT_EQ(sizes.size(), 10U);
  EXPECT_EQ(sizes.front(), 4_KiB);
  EXPECT_EQ(sizes[1], 16_KiB);
  EXPECT_EQ(sizes.back(), 1_GiB);
}

struct Heard {
  std::vector<LinkRow> rows;
  std::vector<std::string> notes;
  std::vector<double> progress;

  [[nodiscard]] bool has_note(const std::string& words) const {
    return std::ranges::any_of(
        notes, [&](const std::string& note) { return note.find(words) != std::string::npos; });
  }
};

Heard bench(WatchedDevice& device, std::vector<um::Bytes> sizes, std::vector<Way> ways) {
  Heard heard;
  bench_link(
      device,
      {.sizes = std::move(sizes),
       .ways = std::move(ways),
       .repetition = {.max_runs = 2, .max_time = Seconds{0.01}}},
      {.on_progress = [&](double done, const std::string&) { heard.progress.push_back(done); },
       .on_row = [&](const LinkRow& row) { heard.rows.push_back(row); },
       .on_note = [&](const std::string& note) { heard.notes.push_back(note); }},
      {});
  return heard;
}

TEST(BenchLink, HasARowForEachWaySizeAndDirection) {
  WatchedDevice device;
  const Heard heard = bench(device, {4_KiB, 64_KiB}, {Way::kFault, Way::kPinnedCopy});

  ASSERT_EQ(heard.rows.size(), 12U);
  EXPECT_EQ(heard.rows.front().way, Way::kFault);
  EXPECT_EQ(heard.rows.front().direction, Direction::kIn);
  EXPECT_EQ(heard.rows.front().size, 4_KiB);
  EXPECT_EQ(heard.rows.back().way, Way::kPinnedCopy);
  EXPECT_EQ(heard.rows.back().direction, Direction::kBoth);
  EXPECT_EQ(heard.rows.back().size, 64_KiB);
}

TEST(BenchLink, TellsHowFarItIs) {
  WatchedDevice device;
  // Three directions of one way and two sizes: six rows.
  const Heard heard = bench(device, {4_KiB, 64_KiB}, {Way::kPageableCopy});

  ASSERT_EQ(heard.progress.size(), 6U);
  EXPECT_EQ(heard.progress[0], 0);
  EXPECT_EQ(heard.progress[3], 0.5);
}

TEST(BenchLink, LeavesTheFileOutWhereNobodySaysWhere) {
  WatchedDevice device;
  const Heard heard = bench(device, {4_KiB}, {Way::kFile});

  EXPECT_TRUE(heard.rows.empty());
  ASSERT_EQ(heard.notes.size(), 1U);
  EXPECT_TRUE(heard.has_note("--far file:PATH"));
}

// Four times 64 KiB are more than half of 511 KiB, four times 4 KiB are not.
TEST(BenchLink, LeavesOutWhatTakesMoreThanHalfOfTheMemory) {
  WatchedDevice device;
  device.available = 511_KiB;
  const Heard heard = bench(device, {4_KiB, 64_KiB}, {Way::kPageableCopy});

  EXPECT_EQ(heard.rows.size(), 3U);
  EXPECT_TRUE(heard.has_note("64.0 KiB is left out"));

  device.available = 512_KiB;
  EXPECT_EQ(bench(device, {4_KiB, 64_KiB}, {Way::kPageableCopy}).rows.size(), 6U);
}

TEST(BenchLink, SaysWhatAGpuCannotBeMeasuredBy) {
  WatchedDevice gpu;
  gpu.is_gpu = true;
  const Heard heard = bench(gpu, {4_KiB}, {Way::kFault, Way::kPageableCopy});

  ASSERT_EQ(heard.rows.size(), 1U);
  EXPECT_EQ(heard.rows.front().direction, Direction::kOut);
  EXPECT_TRUE(heard.has_note("--count-faults"));
}

TEST(BenchLink, KeepsTheRowsBeforeItWasStopped) {
  WatchedDevice device;
  std::stop_source stop;
  std::size_t rows = 0;
  const LinkListener listener{.on_progress = [](double, const std::string&) {},
                              .on_row =
                                  [&](const LinkRow&) {
                                    ++rows;
                                    stop.request_stop();
                                  },
                              .on_note = [](const std::string&) {}};

  EXPECT_THROW(bench_link(device, {.sizes = {4_KiB}, .ways = {Way::kPinnedCopy}}, listener,
                          stop.get_token()),
               Interrupted);
  EXPECT_EQ(rows, 1U);
}

constexpr std::array kDirections{Direction::kIn, Direction::kOut, Direction::kBoth};

// Returns the counts of the second of two moves that are alike: the first may have to make
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

// The parameter is a number of bytes.
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
