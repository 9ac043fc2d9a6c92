// Options of the benches, and their tables for people.

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "src/bench/train/train_row.h"
#include "src/cli/bench/bench_command.h"
#include "src/cli/bench/bench_output.h"
#include "tests/src/bench/timing_of.h"

namespace spillway::cli {
namespace {

using namespace um::literals;
using test::timing_of;

TEST(BenchFlags, MeasureNoFigureInLessThanATwentiethOfASecond) {
  EXPECT_EQ(BenchFlags{}.repetition().min_time, Seconds{0.05});
}

TEST(TimeText, MarksWhatHasNotSettled) {
  EXPECT_EQ(time_text(timing_of(0.002)), "2.000 ms ");
  EXPECT_EQ(time_text(timing_of(0.002, false)), "2.000 ms~");
}

LinkRow link_row(Way way, Direction direction, um::Bytes size, double seconds) {
  return {.way = way,
          .direction = direction,
          .size = size,
          .time = timing_of(seconds),
          .call = timing_of(1e-6)};
}

// 4096 bytes in 4.096 us are 1 GB/s, as are both directions in twice the time.
TEST(LinkTable, HasALineForEachWayAndSize) {
  const std::vector<LinkRow> rows{link_row(Way::kFault, Direction::kIn, 4_KiB, 4.096e-6),
                                  link_row(Way::kFault, Direction::kBoth, 4_KiB, 8.192e-6),
                                  link_row(Way::kFile, Direction::kOut, 4_KiB, 2.048e-6)};

  EXPECT_EQ(link_table(rows),
            "way        size        in  GB/s       out  GB/s      both  GB/s      held\n"
            "fault  4.00 KiB  4.10 us   1.00         -        8.19 us   1.00  1.00 us\n"
            "file   4.00 KiB         -        2.05 us   2.00         -        1.00 us\n");
}

TEST(LaunchTable, HasALineForEachRow) {
  const std::vector<LaunchRow> rows{
      {.beside = {}, .size = {}, .call = timing_of(1e-6), .whole = timing_of(2e-6)},
      {.beside = Way::kPrefetch, .size = 4_KiB, .call = timing_of(3e-6), .whole = timing_of(4e-6)}};
  const std::string table = launch_table(rows);
  for (const char* words : {"alone", "beside prefetch out", "4.00 KiB", "3.00 us", "4.00 us"}) {
    EXPECT_NE(table.find(words), std::string::npos) << words << table;
  }
}

TEST(PagingTable, HasALineForEachRow) {
  um::Counters counters;
  counters.faults = 3;
  counters.evictions = 2;
  counters.bytes_prefetched = 2_KiB;
  const PagingRow row{.pattern = TouchPattern::kStream,
                      .way = PagingWay::kFaults,
                      .near_times = 1.5,
                      .size = 3_KiB,
                      .near = 2_KiB,
                      .time = timing_of(0.003),
                      .plain = timing_of(0.002),
                      .counters = counters};

  EXPECT_EQ(
      paging_table({&row, 1}),
      "size  pattern  way          time      plain  ratio  faults  evictions        in  out\n"
      "1.5x  stream   faults  3.000 ms   2.000 ms    1.50       3          2  2.00 KiB  0 B\n");
}

TrainRow train_row(const std::string& strategy, double seconds, double predicted) {
  TrainRow row;
  row.key.net = "resnet18";
  row.key.batch = 16;
  row.key.strategy = find_train_strategy(strategy);
  row.measurement = TrainMeasurement{.step = timing_of(seconds)};
  row.predicted = Seconds{predicted};
  return row;
}

// 2 differs from 2.5 by 20 %, 2.4 by 4 %.
TEST(TrainingTable, MarksPredictionsThatAreFarOff) {
  const std::vector<TrainRow> rows{train_row("joint", 2.5, 2), train_row("copy", 2.5, 2.4)};

  testing::internal::CaptureStdout();
  print_training_rows(rows);
  const std::string table = testing::internal::GetCapturedStdout();

  EXPECT_NE(table.find("0.80!"), std::string::npos) << table;
  EXPECT_NE(table.find("0.96 "), std::string::npos) << table;
}

// The ratio is 2.5 s to 2 s.
TEST(TrainingTable, MarksRatiosThatHaveNotSettledAndCallsNoneOfThemTheFastest) {
  std::vector<TrainRow> rows{train_row("joint", 2.5, 2.5), train_row("copy", 2.6, 2.6)};
  for (TrainRow& row : rows) row.resident = {.time = Seconds{2}, .is_measured = true};
  const auto table_of = [](const std::vector<TrainRow>& all) {
    testing::internal::CaptureStdout();
    print_training_rows(all);
    return testing::internal::GetCapturedStdout();
  };
  EXPECT_NE(table_of(rows).find("* joint"), std::string::npos);

  rows[0].measurement->step.settled = false;
  const std::string table = table_of(rows);
  EXPECT_NE(table.find("1.25~"), std::string::npos) << table;
  EXPECT_NE(table.find("1.30 "), std::string::npos) << table;
  EXPECT_EQ(table.find("* "), std::string::npos) << table;
}

}  // namespace
}  // namespace spillway::cli
