#include "src/bench/paging/paging_bench.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "src/run/executor.h"
#include "tests/src/bench/timing_of.h"
#include "tests/um/hosted_device.h"
#include "um/error.h"

namespace spillway::test {
namespace {

using namespace um::literals;

// 16 near pages.
PagingBenchOptions options_of(TouchPattern pattern, PagingWay way, double near_times) {
  PagingBenchOptions options{.near = 1_MiB,
                             .near_times = {near_times},
                             .patterns = {pattern},
                             .ways = {way},
                             .repetition = {.settling = {.min_runs = 2}, .max_runs = 2}};
  options.space.page = 64_KiB;
  return options;
}

std::vector<PagingRow> bench(const PagingBenchOptions& options) {
  WatchedDevice device;
  std::vector<PagingRow> rows;
  bench_paging(device, options,
               {.on_progress = [](double, const std::string&) {},
                .on_row = [&](const PagingRow& row) { rows.push_back(row); }},
               {});
  return rows;
}

um::Counters counters_of(TouchPattern pattern, PagingWay way, double near_times) {
  const std::vector<PagingRow> rows = bench(options_of(pattern, way, near_times));
  EXPECT_EQ(rows.size(), 1U);
  return rows.front().counters;
}

TEST(BenchPaging, FaultsNoMoreWhenAllPagesAreNear) {
  for (const TouchPattern pattern : {TouchPattern::kStream, TouchPattern::kStride,
                                     TouchPattern::kReverse, TouchPattern::kRandom}) {
    const um::Counters counters = counters_of(pattern, PagingWay::kFaults, 1);

    EXPECT_EQ(counters.faults, 0U) << to_string(pattern);
    EXPECT_EQ(counters.bytes_prefetched, 0_B) << to_string(pattern);
  }
}

// Whoever streams over 32 pages in turns finds none of them among the 16 touched last.
TEST(BenchPaging, FaultsOnEveryPageOfAStreamThatDoesNotFit) {
  const um::Counters counters = counters_of(TouchPattern::kStream, PagingWay::kFaults, 2);

  EXPECT_EQ(counters.faults, 32U);
  EXPECT_EQ(counters.evictions, 32U);
  EXPECT_EQ(counters.bytes_prefetched, 2_MiB);
  EXPECT_EQ(counters.bytes_offloaded, 2_MiB);
}

// Three quarters of the 16 near pages stay, the other 20 pass through the rest.
TEST(BenchPaging, AdvisedPagesStay) {
  EXPECT_EQ(counters_of(TouchPattern::kStream, PagingWay::kAdvised, 2).faults, 20U);
}

TEST(BenchPaging, DiscardedContentIsNotBroughtBack) {
  const um::Counters counters = counters_of(TouchPattern::kStream, PagingWay::kDiscarded, 2);

  EXPECT_EQ(counters.bytes_prefetched, 0_B);
  EXPECT_EQ(counters.bytes_offloaded, 1_MiB);  // of the first 16 pages, for the other 16
}

// All of them stay mapped: where a pass overwrites them there is nothing to do.
TEST(BenchPaging, DiscardedPagesThatFitCostNothing) {
  const um::Counters counters = counters_of(TouchPattern::kStream, PagingWay::kDiscarded, 0.5);

  EXPECT_EQ(counters.faults, 0U);
  EXPECT_EQ(counters.discarded_pages, 8U);
}

// At most 16 of the 32 pages are near when a pass begins, and as many when it ends; all were
// written.
TEST(BenchPaging, PrefetchedPagesComeAndGo) {
  const um::Counters counters = counters_of(TouchPattern::kStream, PagingWay::kPrefetched, 2);

  EXPECT_GE(counters.bytes_prefetched, 1_MiB);
  EXPECT_GE(counters.bytes_offloaded, 1_MiB);
}

TEST(BenchPaging, HasARowForEachSizePatternAndWay) {
  PagingBenchOptions options = options_of(TouchPattern::kStream, PagingWay::kFaults, 2);
  options.near_times = {0.5, 1.5};
  options.ways = {PagingWay::kFaults, PagingWay::kDiscarded};
  options.patterns = {TouchPattern::kStride, TouchPattern::kRandom};
  const std::vector<PagingRow> rows = bench(options);

  ASSERT_EQ(rows.size(), 8U);
  EXPECT_EQ(rows.front().size, 512_KiB);
  EXPECT_EQ(rows.back().size, 1536_KiB);
  EXPECT_EQ(rows.back().pattern, TouchPattern::kRandom);
  EXPECT_EQ(rows.back().way, PagingWay::kDiscarded);
}

TEST(BenchPaging, EndsWhenItIsStopped) {
  WatchedDevice device;
  const PagingListener deaf{.on_progress = [](double, const std::string&) {},
                            .on_row = [](const PagingRow&) {}};

  std::stop_source stop;
  stop.request_stop();
  EXPECT_THROW(bench_paging(device, options_of(TouchPattern::kStream, PagingWay::kFaults, 2), deaf,
                            stop.get_token()),
               Interrupted);
}

TEST(BenchPaging, WantsADeviceThatEvicts) {
  WatchedDevice gpu;
  gpu.is_gpu = true;

  EXPECT_THROW(bench_paging(gpu, options_of(TouchPattern::kStream, PagingWay::kFaults, 2), {}, {}),
               um::ContractError);
}

TEST(PagingWay, HasTheNameThatBenchFilesGiveIt) {
  EXPECT_EQ(to_string(PagingWay::kFaults), "faults");
  EXPECT_EQ(to_string(PagingWay::kAdvised), "advised");
  EXPECT_EQ(to_string(PagingWay::kPrefetched), "prefetched");
  EXPECT_EQ(to_string(PagingWay::kDiscarded), "discarded");
}

TEST(PagingWay, IsFoundByTheNameThatIsWritten) {
  for (const PagingWay way :
       {PagingWay::kFaults, PagingWay::kAdvised, PagingWay::kPrefetched, PagingWay::kDiscarded}) {
    EXPECT_EQ(find_paging_way(to_string(way)), way);
  }
  EXPECT_FALSE(find_paging_way("guessed"));
}

TEST(PagingRow, HasTheFieldsOfTheFormat) {
  um::Counters counters;
  counters.faults = 3;
  counters.evictions = 2;
  counters.bytes_prefetched = 7_B;
  counters.bytes_offloaded = 5_B;
  const PagingRow row{.pattern = TouchPattern::kReverse,
                      .way = PagingWay::kAdvised,
                      .near_times = 1.5,
                      .size = 24_B,
                      .near = 16_B,
                      .time = timing_of(6),
                      .plain = timing_of(2),
                      .counters = counters};

  nlohmann::json expected = nlohmann::json::parse(R"({
    "pattern": "reverse", "way": "advised", "near_times": 1.5, "bytes": 24, "near_bytes": 16,
    "ratio": 3.0, "faults": 3, "evictions": 2, "bytes_in": 7, "bytes_out": 5})");
  expected["seconds"] = to_json(timing_of(6));
  expected["plain_seconds"] = to_json(timing_of(2));
  EXPECT_EQ(to_json(row), expected);
}

TEST(PagedSize, IsWholePages) {
  EXPECT_EQ(paged_size(10_MiB, 1.5, 2_MiB), 14_MiB);  // 15 MiB, less what is no page
  EXPECT_EQ(paged_size(10_MiB, 0.25, 4_KiB), 2560_KiB);
}

using Order = std::vector<std::size_t>;

TEST(TouchPattern, StreamsForthAndBack) {
  EXPECT_EQ(touch_order(TouchPattern::kStream, 4), (Order{0, 1, 2, 3}));
  EXPECT_EQ(touch_order(TouchPattern::kReverse, 4), (Order{3, 2, 1, 0}));
}

TEST(TouchPattern, StridesByEightOverAllPages) {
  EXPECT_EQ(touch_order(TouchPattern::kStride, 18),
            (Order{0, 8, 16, 1, 9, 17, 2, 10, 3, 11, 4, 12, 5, 13, 6, 14, 7, 15}));
}

TEST(TouchPattern, DrawsTheSamePagesEachTime) {
  const Order order = touch_order(TouchPattern::kRandom, 100);

  EXPECT_EQ(order.size(), 100U);
  EXPECT_LT(*std::ranges::max_element(order), 100U);
  EXPECT_EQ(order, touch_order(TouchPattern::kRandom, 100));
  EXPECT_FALSE(std::ranges::is_sorted(order));
}

TEST(TouchPattern, HasTheNameThatBenchFilesGiveIt) {
  EXPECT_EQ(to_string(TouchPattern::kStream), "stream");
  EXPECT_EQ(to_string(TouchPattern::kStride), "stride");
  EXPECT_EQ(to_string(TouchPattern::kReverse), "reverse");
  EXPECT_EQ(to_string(TouchPattern::kRandom), "random");
}

TEST(TouchPattern, IsFoundByTheNameThatIsWritten) {
  for (const char* name : {"stream", "stride", "reverse", "random"}) {
    EXPECT_EQ(to_string(find_pattern(name).value()), name);
  }
  EXPECT_FALSE(find_pattern("zigzag"));
}

}  // namespace
}  // namespace spillway::test
