// `spillway bench` as a program: its files and its errors. Measured times are not checked.
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <string>

#include "tests/src/cli/program.h"
#include "tests/temporary_folder.h"

namespace spillway::test {
namespace {

using nlohmann::json;

constexpr int kInterrupted = 130;

void expect_timing(const json& timing) {
  EXPECT_GT(timing.at("median"), 0);
  EXPECT_LE(timing.at("min"), timing.at("median"));
  EXPECT_GE(timing.at("max"), timing.at("median"));
  EXPECT_GE(timing.at("deviation"), 0);
  EXPECT_GE(timing.at("runs"), 1);
  EXPECT_TRUE(timing.at("settled").is_boolean());
}

void expect_bench_file(const json& file, const std::string& bench) {
  EXPECT_EQ(file.at("format"), "spillway-bench");
  EXPECT_EQ(file.at("version"), 2);
  EXPECT_EQ(file.at("bench"), bench);
  EXPECT_EQ(file.at("date").get<std::string>().size(), std::string{"2026-11-22T11:00:00Z"}.size());
  EXPECT_GT(file.at("seconds"), 0);
  EXPECT_TRUE(file.at("build").at("version").is_string());
  EXPECT_EQ(file.at("machine").at("id").get<std::string>().size(), 12U);
  EXPECT_EQ(file.at("machine").at("device"), "host");
  EXPECT_GT(file.at("machine").at("memory_bytes"), 0);
  EXPECT_TRUE(file.at("options").is_object());
  EXPECT_TRUE(file.at("rows").is_array());
}

json bench_json(const Arguments& arguments) { return json_of({arguments, "--quick --json -"}); }

TEST(BenchLinkProgram, MeasuresEachWayAndDirection) {
  const TemporaryFolder folder;
  const json file = bench_json(
      {"bench link --device host --far", "file:" + folder.path().string(), "--sizes 4KiB,1MiB"});

  expect_bench_file(file, "link");
  EXPECT_EQ(file.at("rows").size(), 30U);  // 5 ways, 2 sizes, 3 directions
  for (const json& row : file.at("rows")) {
    expect_timing(row.at("seconds"));
    expect_timing(row.at("call_seconds"));
    EXPECT_GT(row.at("bytes_per_second"), 0);
    EXPECT_TRUE(row.at("bytes") == 4096 || row.at("bytes") == 1048576) << row;
  }
  const json& alone = file.at("launches").at(0);
  EXPECT_TRUE(alone.at("beside").is_null());
  expect_timing(alone.at("call_seconds"));
  expect_timing(alone.at("seconds"));
}

TEST(BenchLinkProgram, KeepsItsFlagsInTheFile) {
  const json options = bench_json(
                           "bench link --device host --ways pinned_copy --sizes 64KiB "
                           "--link-bandwidth 2GB/s --seconds 0.5")
                           .at("options");

  EXPECT_EQ(options.at("link-bandwidth"), "2GB/s");
  EXPECT_EQ(options.at("seconds"), 0.5);
  EXPECT_EQ(options.at("deviation"), 0.03);
  EXPECT_EQ(options.at("quick"), true);
  EXPECT_EQ(options.at("managed-limit"), nullptr);
  EXPECT_EQ(options.at("ways"), "pinned_copy");
  EXPECT_FALSE(options.contains("json"));
  EXPECT_FALSE(options.contains("help"));
}

// 1 MiB at 100 MB/s takes at least 10.5 ms on any machine.
TEST(BenchLinkProgram, MeasuresTheLinkThatWasAskedFor) {
  for (const char* way : {"prefetch", "pinned_copy"}) {
    const json file = bench_json(
        {"bench link --device host --ways", way, "--sizes 1MiB --link-bandwidth 100MB/s"});
    for (const json& row : file.at("rows")) {
      EXPECT_GE(row.at("seconds").at("min"), 0.0104) << row;
    }
  }
}

TEST(BenchPagingProgram, MeasuresEachPatternAndWay) {
  const json file = bench_json("bench paging");

  expect_bench_file(file, "paging");
  EXPECT_TRUE(file.at("machine").at("paging").is_string());
  EXPECT_EQ(file.at("options").at("near"), "1MiB");  // the value of --quick
  EXPECT_EQ(file.at("options").at("page"), "64KiB");
  EXPECT_EQ(file.at("options").at("times").size(), 2U);
  EXPECT_EQ(file.at("rows").size(), 32U);  // 4 patterns, 2 sizes, 4 ways
  for (const json& row : file.at("rows")) {
    expect_timing(row.at("seconds"));
    expect_timing(row.at("plain_seconds"));
    EXPECT_GT(row.at("ratio"), 0);
    EXPECT_TRUE(row.at("faults").is_number_unsigned());
  }
}

TEST(BenchPagingProgram, PagesInBothMechanisms) {
  const json file = bench_json("bench paging --paging memfd --patterns stream");

  EXPECT_EQ(file.at("machine").at("paging"), "memfd");
  EXPECT_EQ(file.at("rows").size(), 8U);
}

TEST(BenchProgram, ShowsATableOnStandardOutput) {
  const Outcome link = succeed("bench link --device host --quick --sizes 4KiB");
  expect_parts(link.output, {"pinned_copy", "launch", "alone", "give --far file:PATH"});

  const Outcome paging = succeed("bench paging --quick --patterns random");
  expect_parts(paging.output, {"discarded"});
}

TEST(BenchProgram, RefusesToReplaceWhatAnotherMachineMeasured) {
  const TemporaryFolder folder;
  const std::string path = folder.path() / "bench.json";
  const Arguments again = {"bench paging --quick --ways faults --patterns stream --json", path};
  succeed(again);
  succeed(again);

  expect_refused(kFailure, {"bench link --quick --json", path}, {path, "bench paging"});
  json file = json::parse(std::ifstream{path});
  file["machine"]["id"] = "000000000000";
  std::ofstream{path} << file;
  expect_refused(kFailure, again, {path, "another machine"});
}

TEST(BenchProgram, WritesOnlyWhatItReachedWhenItIsInterrupted) {
  const TemporaryFolder folder;
  const std::string path = folder.path() / "bench.json";
  Program program{
      {"bench paging --near 1MiB --page 64KiB --deviation 0 --repeats 1000000 --seconds 0.2 --json",
       path}};
  program.wait_for_error("bench paging");  // wait until it has begun
  program.signal(SIGINT);
  const Outcome outcome = program.finish();

  EXPECT_EQ(outcome.exit_code, kInterrupted) << outcome.errors;
  expect_parts(outcome.errors, {"not reached are left out"});
  const json file = json::parse(std::ifstream{path});
  EXPECT_LT(file.at("rows").size(), 80U);
}

// Stops at the second of three rows; each row takes a second.
TEST(BenchProgram, KeepsWhatItMeasuredBeforeItWasInterrupted) {
  const TemporaryFolder folder;
  const std::string path = folder.path() / "bench.json";
  Program program{{"bench paging --near 1MiB --page 64KiB --times 2 --ways faults --patterns "
                   "stream,reverse,random --deviation 0 --repeats 1000000 --seconds 1 --json",
                   path},
                  {},
                  Program::Errors::kTerminal};
  program.wait_for_error("reverse faults");
  program.signal(SIGINT);

  EXPECT_EQ(program.finish().exit_code, kInterrupted);
  const json rows = json::parse(std::ifstream{path}).at("rows");
  ASSERT_EQ(rows.size(), 1U);
  EXPECT_EQ(rows[0].at("pattern"), "stream");
  expect_timing(rows[0].at("seconds"));
}

// Benches that fail in the middle, because the far memory of a later row does not fit.

constexpr rlim_t kLargestFile = 1 << 20;

/// While it exists, programs started by this one cannot make files larger than `size`.
class FileSizeLimit {
 public:
  explicit FileSizeLimit(rlim_t size) : handler_{std::signal(SIGXFSZ, SIG_IGN)} {
    if (getrlimit(RLIMIT_FSIZE, &before_) != 0) ADD_FAILURE() << "no limit to come back to";
    const rlimit limit{.rlim_cur = size, .rlim_max = before_.rlim_max};
    if (setrlimit(RLIMIT_FSIZE, &limit) != 0) ADD_FAILURE() << "files cannot be limited";
  }
  FileSizeLimit(const FileSizeLimit&) = delete;
  FileSizeLimit& operator=(const FileSizeLimit&) = delete;
  ~FileSizeLimit() {
    setrlimit(RLIMIT_FSIZE, &before_);
    std::signal(SIGXFSZ, handler_);
  }

 private:
  void (*handler_)(int);
  rlimit before_{};
};

class FailingBench : public testing::Test {
 protected:
  [[nodiscard]] Outcome run(const Arguments& arguments) const {
    const FileSizeLimit limit{kLargestFile};
    return run_spillway(
        {arguments, "--quick --far", "file:" + folder_.path().string(), "--json", path_});
  }
  [[nodiscard]] json rows() const { return json::parse(std::ifstream{path_}).at("rows"); }
  static void expect_one_sentence(const Outcome& outcome) {
    EXPECT_EQ(outcome.exit_code, kFailure) << outcome.errors;
    const std::string begin = "spillway: cannot put 2.00 MiB of far memory in ";
    const std::size_t at = outcome.errors.rfind("spillway: ");
    ASSERT_NE(at, std::string::npos) << outcome.errors;
    const std::string sentence = outcome.errors.substr(at);
    EXPECT_TRUE(sentence.starts_with(begin)) << sentence;
    EXPECT_EQ(sentence.find('\n'), sentence.size() - 1) << sentence;
  }

  TemporaryFolder folder_;
  std::string path_ = folder_.file("bench.json");
};

// The file has one half per direction: 8 KiB for the first size, 2 MiB for the second.
TEST_F(FailingBench, OfTheLinkKeepsTheSizeBefore) {
  const Outcome outcome = run("bench link --device host --ways file --sizes 4KiB,1MiB");

  expect_one_sentence(outcome);
  expect_parts(outcome.output, {"4.00 KiB"});
  const json kept = rows();
  ASSERT_EQ(kept.size(), 3U);  // directions
  for (const json& row : kept) EXPECT_EQ(row.at("bytes"), 4096) << row;
}

// Near memory is 1 MiB; far memory is half of that, then twice.
TEST_F(FailingBench, OfPagingKeepsTheSizeBefore) {
  const Outcome outcome = run("bench paging --ways faults --patterns stream,random");

  expect_one_sentence(outcome);
  expect_parts(outcome.output, {"0.5x"});
  const json kept = rows();
  ASSERT_EQ(kept.size(), 2U);  // patterns
  for (const json& row : kept) EXPECT_EQ(row.at("near_times"), 0.5) << row;
}

TEST_F(FailingBench, BeforeItsFirstRowLeavesTheFileThatIsThere) {
  std::ofstream{path_} << "old";
  const Outcome outcome = run("bench link --device host --ways file --sizes 1MiB");

  expect_one_sentence(outcome);
  expect_parts(outcome.errors, {"nothing was measured"});
  std::string left;
  std::ifstream{path_} >> left;
  EXPECT_EQ(left, "old");
}

// `spillway bench train` and `spillway bench planners` on a tiny network.

namespace fs = std::filesystem;

// Four convolutions that each keep their input, so that half of a step's memory can be offloaded.
constexpr const char* kTiny = R"(spillway-network 1
name tiny
input 3x16x16
classes 4
conv1 convolution channels=8 kernel=3 padding=1
norm1 batch-norm
conv2 convolution channels=8 kernel=3 padding=1
norm2 batch-norm
conv3 convolution channels=8 kernel=3 padding=1
norm3 batch-norm
mean  global-average-pool
fc    linear features=classes
loss  softmax-cross-entropy
)";

class BenchTraining : public testing::Test {
 protected:
  BenchTraining() { std::ofstream{net_} << kTiny; }

  [[nodiscard]] Arguments quick(const std::string& bench, const Arguments& more) const {
    return {"bench", bench, "--device host --threads 1 --quick --net", net_ + ":16", more};
  }
  // Returns the JSON of a bench that must succeed.
  [[nodiscard]] json result(const std::string& bench, const Arguments& more = {}) const {
    return json_of(quick(bench, {"--json -", more}));
  }

  TemporaryFolder folder_;
  std::string net_ = folder_.file("tiny.net");
};

void expect_shape(const json& row) {
  if (row.contains("failed")) {
    EXPECT_FALSE(row.contains("seconds")) << row;
    return;
  }
  EXPECT_GT(row.at("seconds").at("median"), 0);
  EXPECT_EQ(row.at("seconds").at("runs"), 2) << "one round of two steps";
  EXPECT_GT(row.at("images_per_second"), 0);
  EXPECT_GT(row.at("ratio"), 0);
  EXPECT_GT(row.at("predicted_seconds"), 0);
  EXPECT_LE(row.at("near_peak_bytes"), row.at("budget_bytes")) << row;
  EXPECT_EQ(row.at("resident_is"), "measured");
}

// Returns the batches of the series over batches, and whether the resident step fits the budget.
std::map<std::size_t, bool> batches_with_resident(const json& file) {
  std::map<std::size_t, bool> fits;
  for (const json& row : file.at("rows")) {
    if (row.at("series") != "batch" || row.at("strategy") != "resident") continue;
    fits[row.at("batch")] = !row.contains("failed");
  }
  return fits;
}

TEST_F(BenchTraining, FillsBothSeries) {
  const json file = result("train", "--planners vdnn-all");

  EXPECT_EQ(file.at("format"), "spillway-bench");
  EXPECT_EQ(file.at("version"), 2);
  EXPECT_EQ(file.at("bench"), "train");
  std::map<std::string, std::set<std::string>> strategies;
  std::map<std::string, std::size_t> rows;
  for (const json& row : file.at("rows")) {
    expect_shape(row);
    ++rows[row.at("series")];
    strategies[row.at("series")].insert(row.at("strategy"));
  }
  const std::set<std::string> all{"resident", "on-demand", "capacity", "joint", "copy", "vdnn-all"};
  EXPECT_EQ(strategies["batch"], all);
  EXPECT_EQ(strategies["budget"], all);
  EXPECT_EQ(rows["batch"], 18U) << "six strategies at batches 8, 16 and 32";
  EXPECT_EQ(rows["budget"], 6U) << "at batch 16, min+50%";
}

TEST_F(BenchTraining, CrossesTheEndOfNearMemory) {
  const json file = result("train", "--strategies joint");

  EXPECT_EQ(batches_with_resident(file),
            (std::map<std::size_t, bool>{{8, true}, {16, false}, {32, false}}));
}

// 5 is not a multiple of 4: batches are rounded down, but the budget still ends at 5.
TEST_F(BenchTraining, CrossesTheEndOfNearMemoryAtAnyBatch) {
  EXPECT_EQ(batches_with_resident(json_of({"bench train --device host --threads 1 --quick --net",
                                           net_ + ":5", "--strategies joint --json -"})),
            (std::map<std::size_t, bool>{{2, true}, {5, false}, {10, false}}));
}

TEST_F(BenchTraining, KeepsItsOptions) {
  const json options =
      result("train", "--strategies joint,copy --batches 4,8 --link-bandwidth 2GB/s").at("options");

  EXPECT_EQ(options.at("net"), net_ + ":16");
  EXPECT_EQ(options.at("rounds"), 1);
  EXPECT_EQ(options.at("steps"), 2);
  EXPECT_EQ(options.at("strategies"), (json{"joint", "copy"}));
  EXPECT_EQ(options.at("batches"), (json{4, 8}));
  EXPECT_EQ(options.at("link-bandwidth"), "2GB/s");
}

TEST_F(BenchTraining, ExecutesEveryPlanner) {
  const json file = result("planners");

  EXPECT_EQ(file.at("bench"), "planners");
  std::set<std::string> ran;
  std::size_t rows = 0;
  for (const json& row : file.at("rows")) {
    expect_shape(row);
    EXPECT_EQ(row.at("series"), "planner");
    if (!row.contains("failed")) ran.insert(row.at("strategy"));
    ++rows;
  }
  EXPECT_GE(rows, 20U) << "nineteen planners and the resident run";
  for (const char* name : {"joint", "capacity", "modnn", "superneurons", "on-demand"}) {
    EXPECT_TRUE(ran.contains(name)) << name;
  }
}

TEST_F(BenchTraining, ExecutesPlannersWithCopies) {
  const json file = result("planners", "--memory copy --planners joint");

  const json& row = file.at("rows").back();
  expect_shape(row);
  EXPECT_EQ(row.at("memory"), "copy");
  EXPECT_EQ(row.at("planner"), "joint");
}

TEST_F(BenchTraining, WritesTimelinesAndPlansOfTheFixedBatch) {
  const fs::path timelines = folder_.path() / "new" / "timelines";
  const json file =
      result("train", {"--strategies joint --batches 16 --timeline", timelines.string()});

  std::set<std::string> names;
  for (const auto& entry : fs::directory_iterator{timelines}) {
    std::string name = entry.path().filename();
    names.insert(name.substr(name.find("-b16-")));
  }
  EXPECT_EQ(names, (std::set<std::string>{"-b16-joint-min+50pct.plan.json",
                                          "-b16-joint-min+50pct.trace.json",
                                          "-b16-resident.plan.json", "-b16-resident.trace.json"}));
}

// Rows of single runs, without a fastest one.
TEST_F(BenchTraining, PrintsATable) {
  const Outcome outcome = succeed(quick("train", "--strategies joint,copy"));
  expect_parts(outcome.output, {"at batch 16, images of 16x16, budget min+50% = ", "\n  copy ",
                                "resident failed: all of it resident needs "});
}

TEST_F(BenchTraining, KeepsABudgetThatIsTooSmallAsARow) {
  const json file = result("train", "--budgets 1KiB --strategies joint");

  expect_parts(file.at("rows").back().at("failed").get<std::string>(), {"too small"});
}

TEST_F(BenchTraining, WritesItsFileWhenItIsStopped) {
  const std::string path = folder_.file("bench.json");
  Program program{quick("train", {"--rounds 100000 --deviation 0 --json", path})};
  program.wait_for_error("measuring tasks");
  program.signal(SIGINT);
  const Outcome outcome = program.finish();

  EXPECT_EQ(outcome.exit_code, 130) << outcome.errors;
  EXPECT_TRUE(
      outcome.errors.ends_with("spillway: interrupted; rows that were not reached are left out\n"))
      << outcome.errors;
  std::ifstream file{path};
  EXPECT_EQ(json::parse(file).at("bench"), "train");
}

// Stops in a later round than the first, after every row has been measured.
TEST_F(BenchTraining, KeepsWhatItMeasuredBeforeItWasStopped) {
  for (const char* bench : {"train", "planners"}) {
    const std::string path = folder_.file(std::string{bench} + ".json");
    Program program{quick(bench, {"--planners joint --rounds 100000 --deviation 0 --json", path}),
                    {},
                    Program::Errors::kTerminal};
    program.wait_for_error("round 2");  // any later round such as 20 also matches
    program.signal(SIGINT);
    const Outcome outcome = program.finish();

    EXPECT_EQ(outcome.exit_code, 130) << outcome.errors;
    std::ifstream file{path};
    const json rows = json::parse(file).at("rows");
    EXPECT_GE(rows.size(), 2U) << bench;
    for (const json& row : rows) {
      EXPECT_TRUE(row.contains("failed") || row.at("seconds").at("runs") >= 2) << row;
    }
    EXPECT_TRUE(std::ranges::any_of(rows, [](const json& row) {
      return row.at("strategy") == "joint" && row.contains("seconds");
    })) << rows;
  }
}

TEST_F(BenchTraining, ReadsNamesWithCommasAndColons) {
  const Outcome outcome = run_spillway(
      "bench train --device host --threads 1 --quick --net resnet:1,1,1,1:2,lenet:4 --image-size "
      "32 --strategies joint --batches 2 --seconds 0.001");

  EXPECT_EQ(outcome.exit_code, 1);
  expect_parts(outcome.errors, {"no run was reached in time; give more --seconds"});
}

}  // namespace
}  // namespace spillway::test
