// `spillway bench train` and `spillway bench planners` on a tiny network.

#include <gtest/gtest.h>

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

namespace fs = std::filesystem;

using nlohmann::json;

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
  for (const char* name : {"series", "net", "image_size", "batch", "strategy", "memory", "planner",
                           "budget", "budget_bytes", "resident_bytes"}) {
    EXPECT_TRUE(row.contains(name)) << name << " is not in " << row;
  }
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
  for (const char* name : {"bytes_in", "bytes_out", "faults", "stalled_seconds"}) {
    EXPECT_GE(row.at(name), 0) << name;
  }
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
