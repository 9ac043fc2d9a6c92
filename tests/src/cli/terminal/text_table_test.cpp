#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "src/bench/train/train_row.h"
#include "src/cli/bench/bench_command.h"
#include "src/cli/bench/bench_output.h"
#include "src/cli/terminal/help.h"
#include "src/cli/terminal/terminal.h"
#include "src/cli/train/training_report.h"
#include "tests/src/bench/timing_of.h"
#include "um/bytes.h"
#include "um/machine/available_memory.h"

namespace spillway::cli {
namespace {

TEST(TextTable, AlignsNamesToTheLeftAndNumbersToTheRight) {
  EXPECT_EQ(text_table({{"way", "time"}, {"fault", "1"}, {"copy", "100"}}),
            "way    time\n"
            "fault     1\n"
            "copy    100\n");
}

TEST(TextTable, HasAsManyNamesAsItIsTold) {
  EXPECT_EQ(text_table({{"a", "bbb", "c"}, {"aa", "b", "cc"}}, 2),
            "a   bbb   c\n"
            "aa  b    cc\n");
}

TEST(TextTable, MayHaveShortLinesAndNone) {
  EXPECT_EQ(text_table({{"a", "b"}, {"long"}}), "a     b\nlong\n");
  EXPECT_EQ(text_table({}), "");
}

TEST(TextTables, HaveAsManyColumnsAsFit) {
  const std::vector<TableLine> lines{{"name", "1", "22", "3"}, {"a", "b", "c", "dd"}};
  EXPECT_EQ(text_tables(lines, 15), "name  1  22   3\na     b   c  dd\n");
  EXPECT_EQ(text_tables(lines, 14), "name  1  22\na     b   c\n\nname   3\na     dd\n");
  EXPECT_EQ(text_tables(lines, 3),
            "name  1\na     b\n\nname  22\na      c\n\nname   3\na     dd\n");
  EXPECT_EQ(text_tables({{"name"}, {"a"}}, 80), "name\na\n");
}

TEST(Wrapped, BreaksLinesAtBlanksAndLeavesCommandsWhole) {
  EXPECT_EQ(wrapped("one two three\nfour", 8, 2), "one two\n  three\nfour");
  EXPECT_EQ(wrapped("one two three", 13, 0), "one two three");
  EXPECT_EQ(wrapped("a longest-word of all", 6, 0), "a\nlongest-word\nof all");
  EXPECT_EQ(wrapped("longest-word", 6, 0), "longest-word");
  EXPECT_EQ(wrapped("Example: spillway nets", 10, 0), "Example: spillway nets");
  EXPECT_EQ(wrapped("", 10, 0), "");
  EXPECT_EQ(wrapped("end\n", 10, 0), "end\n");
}

TEST(ProgressFields, AreAsManyAsFit) {
  EXPECT_EQ(fitting({"step 1/2", "loss 3", "fast"}, 80), "step 1/2  loss 3  fast");
  EXPECT_EQ(fitting({"step 1/2", "loss 3", "fast"}, 21), "step 1/2  loss 3");  // 22 are needed
  EXPECT_EQ(fitting({"step 1/2", "loss 3", "fast"}, 4), "step 1/2");
  EXPECT_EQ(fitting({}, 4), "");
}

// Options of the benches, and their tables for people.

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

// The last lines of a training.

using std::chrono::milliseconds;

std::string printed(const TrainingSummary& summary, const std::string& profile_file = "") {
  TrainingReport report{JsonLines{"", /*goes_on=*/false}, {}, {.batch = 8}, {}, um::Bytes{1}};
  testing::internal::CaptureStderr();
  report.print(summary, profile_file);
  return testing::internal::GetCapturedStderr();
}

// Steps of 100 ms by the prediction, which took `median`.
TrainingSummary trained(std::uint64_t steps, milliseconds median, milliseconds slow) {
  return {.steps = steps,
          .steps_run = steps,
          .first_loss = 3.5536F,
          .last_loss = 0.01271F,
          .last_accuracy = 1,
          .median_step = median,
          .quick_step = median,
          .slow_step = slow,
          .predicted_step = milliseconds{100}};
}

TEST(TrainingReport, SaysWhatWasLearned) {
  TrainingSummary summary = trained(20, milliseconds{100}, milliseconds{100});
  EXPECT_EQ(printed(summary).find(
                "loss 3.554 -> 0.01271, accuracy 100.0 % (of the last batch; not tested)\n"),
            0U);
  summary.evaluation = Evaluation{.loss = 0.1, .accuracy = 0.992};
  EXPECT_EQ(printed(summary).find("loss 3.554 -> 0.01271, accuracy 100.0 % (test 99.2 %)\n"), 0U);
  summary.steps_run = 1;
  summary.last_accuracy.reset();
  EXPECT_EQ(printed(summary).find("loss 0.01271 (test 99.2 %)\n"), 0U);
  summary.steps_run = 0;
  EXPECT_EQ(printed(summary).find("0 steps, "), 0U);
}

TEST(TrainingReport, SaysThatACgroupHasOtherProcesses) {
  const std::string said = printed(trained(1, milliseconds{1}, milliseconds{1}));
  EXPECT_EQ(said.find("other processes and file pages included\n") != std::string::npos,
            um::peak_of_cgroup().has_value())
      << said;
}

// A wrong prediction is explained only where the steps tell why.
TEST(TrainingReport, ExplainsAPredictionThatIsWrong) {
  struct Explained {
    TrainingSummary summary;
    std::string profile_file;
    std::string ending;
  };
  const milliseconds wrong{200};
  for (const auto& [summary, profile_file, ending] : std::vector<Explained>{
           {trained(20, milliseconds{110}, milliseconds{300}), "", "(-9.1 %)\n"},
           {trained(10, wrong, wrong), "", "(-50.0 %): more than 15 % off\n"},
           {trained(100, milliseconds{9}, milliseconds{9}), "",
            "(+1011.1 %): more than 15 % off\n"},
           {trained(20, wrong, milliseconds{270}), "p.json",
            "(-50.0 %): more than 15 % off; steps took from 0.2000 to 0.2700 s: perhaps this "
            "machine "
            "was busy\n"},
           {trained(20, wrong, wrong), "p.json",
            "(-50.0 %): more than 15 % off, in steady steps: perhaps the times in p.json are of "
            "another machine or step\n"},
           {trained(20, wrong, wrong), "",
            "(-50.0 %): more than 15 % off, in steady steps: tasks took other times when they were "
            "measured before\n"}}) {
    const std::string said = printed(summary, profile_file);
    EXPECT_TRUE(said.ends_with(ending)) << said;
  }
}

}  // namespace
}  // namespace spillway::cli
