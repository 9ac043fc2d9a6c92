#include "src/bench/link/link_bench.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "src/run/executor.h"
#include "tests/src/bench/timing_of.h"
#include "tests/um/hosted_device.h"

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

}  // namespace
}  // namespace spillway::test
