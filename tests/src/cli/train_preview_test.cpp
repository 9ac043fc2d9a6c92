// The beginning of a training: the RAM that it takes, times that are kept, dry runs.

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "tests/src/cli/program.h"
#include "tests/temporary_folder.h"

namespace spillway::test {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

constexpr std::uint64_t kMiB = 1U << 20U;

// ---- RAM

// Far memory in RAM is RAM, too: LeNet at batch 2048 needs 169 MiB.
Arguments half_near(const Arguments& more) {
  return {"train --net lenet --batch 2048 --budget 120MiB --steps 2 --threads 1 --json -", more};
}

TEST(RamOfTraining, IsForetoldWithAndWithoutAFarFile) {
  if (SPILLWAY_SLOW_BUILD != 0) GTEST_SKIP() << "a slow build: sanitizers take memory of their own";
  const TemporaryFolder folder;
  const Outcome in_ram = succeed(half_near({}));
  const json near = summary_of(in_ram);
  const json file = summary_of(half_near({"--far", "file:" + folder.path().string()}));
  expect_parts(in_ram.errors, {"RAM in all about ", "; with --far file:DIR about "});
  EXPECT_GT(near.at("far_bytes"), 20 * kMiB);
  EXPECT_GT(near.at("expected_ram_bytes"),
            near.at("expected_ram_bytes_with_far_file").get<std::uint64_t>() + 20 * kMiB);
  for (const json& summary : {near, file}) {
    const auto expected = summary.at("expected_ram_bytes").get<double>();
    EXPECT_NEAR(summary.at("peak_resident_set_bytes").get<double>(), expected, 0.2 * expected);
  }
  EXPECT_LT(file.at("peak_resident_set_bytes").get<std::uint64_t>() + 20 * kMiB,
            near.at("peak_resident_set_bytes"));
  EXPECT_EQ(near.at("far"), "ram");
  EXPECT_EQ(file.at("far"), "file:" + folder.path().string());
}

TEST(RamOfTraining, IsToldAtTheEnd) {
  const Outcome outcome = succeed(small_training());
  expect_parts(outcome.errors, {"near peak ", "RAM of the process at most "});
}

TEST(RamOfTraining, TakesNoMoreNearMemoryThanItUses) {
  for (const char* memory : {"managed", "copy"}) {
    const json summary = summary_of(
        {"train --net resnet18 --image-size 32 --batch 4 --steps 1 --json - --memory", memory});
    EXPECT_LE(summary.at("budget_bytes"), 1.1 * summary.at("resident_bytes").get<double>())
        << memory;
    EXPECT_LE(summary.at("near_peak_bytes"), summary.at("budget_bytes"));
  }
}

TEST(FarMemory, IsChosenByAutoAloneWhereItCanBe) {
  EXPECT_EQ(summary_of(small_training("--far auto --json -")).at("far"), "ram");
}

// ---- Times that are kept

class KeptTimes : public testing::Test {
 protected:
  // Measures for the usual time, unlike other tests, and keeps the result in the test's own folder.
  [[nodiscard]] Arguments environment() const {
    return {"SPILLWAY_CACHE=" + folder_.file("cache"), "SPILLWAY_MEASURING_TIME=1"};
  }
  [[nodiscard]] Outcome train(const Arguments& more = {}) const {
    return succeed({kTraining, more}, environment());
  }
  [[nodiscard]] json kept() const {
    return json::parse(succeed("cache --json -", environment()).output);
  }
  [[nodiscard]] std::string cache() const { return folder_.file("cache"); }
  [[nodiscard]] std::string file(const std::string& name) const { return folder_.file(name); }

  static constexpr const char* kTraining =
      "train --net lenet --batch 8 --budget min+50% --eval-every 0 --json -";

 private:
  TemporaryFolder folder_;
};

TEST_F(KeptTimes, AreUsedByTheNextStart) {
  const Outcome first = train("--threads 1 --steps 1 --dry-run");
  EXPECT_EQ(kept().at("profiles").size(), 0U) << "a dry run writes nothing";
  expect_parts(first.errors, {"measuring tasks"});
  const Outcome second = train("--threads 1 --steps 1");  // too few for a miss
  const Outcome third = train("--threads 1 --steps 1");
  EXPECT_FALSE(summary_of(second).at("profile_kept"));
  EXPECT_TRUE(summary_of(third).at("profile_kept"));
  expect_parts(third.errors, {"times measured on ", "kept in " + cache(), "--no-cache"});
  EXPECT_EQ(third.errors.find("measuring tasks"), std::string::npos);
  EXPECT_EQ(summary_of(second).at("weights_sha256"), summary_of(third).at("weights_sha256"));
  EXPECT_FALSE(summary_of(train("--threads 1 --steps 1 --no-cache")).at("profile_kept"));
  EXPECT_FALSE(
      summary_of(train("--threads 1 --steps 1 --link-bandwidth 1GB/s")).at("profile_kept"));
  EXPECT_FALSE(summary_of(train("--steps 1 --threads 2")).at("profile_kept"));
}

TEST_F(KeptTimes, AreUsedByEvaluationsToo) {
  static_cast<void>(train({"--steps 1 --checkpoint", file("run")}));
  const Arguments evaluation{"evaluate", file("run"), "--budget min+50% --json -"};
  const Outcome first = succeed(evaluation, environment());
  expect_parts(first.errors, {"measuring tasks"});
  const Outcome second = succeed(evaluation, environment());
  expect_parts(second.errors, {"times measured on ", "kept in " + cache()});
  EXPECT_EQ(second.errors.find("measuring tasks"), std::string::npos);
  EXPECT_EQ(json::parse(first.output).at("loss"), json::parse(second.output).at("loss"));
  const Outcome anew = succeed({evaluation, "--no-cache"}, environment());
  expect_parts(anew.errors, {"measuring tasks"});
}

TEST_F(KeptTimes, AreMeasuredAnewAfterAMiss) {
  static_cast<void>(train("--steps 1"));
  const json before = kept();
  ASSERT_EQ(before.at("profiles").size(), 1U);
  // Times that are a tenth of what they were.
  const fs::path path = fs::path{before.at("folder").get<std::string>()} /
                        before.at("profiles")[0].at("file").get<std::string>();
  std::ifstream in{path};
  json file = json::parse(in);
  json& profile = file.at("profile");
  for (json& task : profile.at("tasks")) {
    for (json& duration : task.at("duration_ns")) {
      duration = duration.get<std::uint64_t>() / 10;
    }
  }
  std::ofstream{path} << file.dump();
  EXPECT_TRUE(summary_of(train("--steps 5")).at("profile_kept")) << "too few steps for a miss";
  const Outcome missed = train("--steps 12");
  expect_parts(missed.errors, {"times measured on ", "the next start measures these times anew"});
  EXPECT_EQ(kept().at("profiles").size(), 0U);
  EXPECT_FALSE(summary_of(train("--steps 1")).at("profile_kept"));
}

TEST_F(KeptTimes, AreShownAndCleared) {
  expect_parts(succeed("cache", environment()).output, {"no measured times in " + cache()});
  static_cast<void>(train("--steps 1"));
  expect_parts(succeed("cache", environment()).output,
               {"lenet at batch 8", "managed", "ram", "1 step in " + cache()});
  const json entry = kept().at("profiles")[0];
  EXPECT_EQ(entry.at("title"), "lenet at batch 8");
  EXPECT_GT(entry.at("bytes"), 0);
  expect_parts(succeed("cache clear", environment()).output, {"removed the times of 1 step"});
  EXPECT_EQ(kept().at("profiles").size(), 0U);
}

TEST_F(KeptTimes, ThatCannotBeKeptEndNothing) {
  std::ofstream{file("a file")} << "text";
  const Outcome outcome =
      succeed({kTraining, "--steps 1"},
              {"SPILLWAY_CACHE=" + file("a file"), std::string{"SPILLWAY_MEASURING_TIME=1"}});
  expect_parts(outcome.errors, {"warning: measured times are not kept: ", "a file"});
}

// ---- Dry runs

TEST(DryRun, SaysWhatATrainingTakesAndWritesNothing) {
  const TemporaryFolder folder;
  const Arguments training{"train --net lenet --batch 8 --steps 3 --eval-every 3 --checkpoint",
                           folder.file("run"),
                           "--timeline",
                           folder.file("timeline.json"),
                           "--tensorboard",
                           folder.file("log"),
                           "--confusion",
                           folder.file("confusion.csv")};
  const Outcome outcome = succeed({training, "--dry-run --json -"});
  EXPECT_TRUE(fs::is_empty(folder.path())) << "something was written";
  expect_parts(outcome.errors, {"lenet (61706 parameters) at batch 8", "synthetic images",
                                "RAM in all about ", "plan of joint", "would train 3 steps, of ",
                                " in all", "would write " + folder.file("run") + " (--checkpoint)",
                                "would write " + folder.file("log") + " (--tensorboard)"});
  EXPECT_EQ(outcome.errors.find("step 1/3"), std::string::npos);
  const json said = json::parse(outcome.output).at("dry_run");
  EXPECT_EQ(said.at("steps_left"), 3);
  EXPECT_EQ(said.at("writes").at("--timeline"), folder.file("timeline.json"));
  EXPECT_GT(said.at("predicted_step_seconds"), 0);
  EXPECT_GT(said.at("budget_bytes"), 0);
  EXPECT_GT(said.at("expected_ram_bytes"), 0);
  const json trained = summary_of(Arguments{training, "--json -"});
  EXPECT_EQ(trained.at("budget_bytes"), said.at("budget_bytes"));
  EXPECT_TRUE(fs::exists(folder.file("run")));
}

TEST(DryRun, LeavesACheckpointAsItIs) {
  const TemporaryFolder folder;
  const Arguments training{"train --net lenet --batch 8 --eval-every 0 --checkpoint",
                           folder.file("run")};
  static_cast<void>(succeed({training, "--steps 2"}));
  const auto times = [&] {
    std::vector<std::pair<std::string, fs::file_time_type>> all;
    for (const auto& entry : fs::directory_iterator{folder.path() / "run"}) {
      if (entry.path().filename() == ".spillway-lock") continue;
      all.emplace_back(entry.path().filename().string(), entry.last_write_time());
    }
    std::ranges::sort(all);
    return all;
  };
  const auto before = times();
  const Outcome on = succeed({training, "--steps 6 --resume --dry-run"});
  expect_parts(on.errors, {"going on after step 2", "would train 4 steps"});
  const Outcome all =
      succeed({training, "--steps 2 --resume --dry-run --json", folder.file("log")});
  expect_parts(all.errors, {"nothing is left to train"});
  EXPECT_EQ(times(), before);
  EXPECT_FALSE(fs::exists(folder.file("log")));
}

// ---- TensorBoard

TEST(TensorBoard, HasTheNumbersOfStepsAndEvaluations) {
  const TemporaryFolder folder;
  static_cast<void>(succeed(
      {"train --net lenet --batch 8 --steps 2 --eval-every 2 --tensorboard", folder.file("log")}));
  std::vector<fs::path> files;
  for (const auto& entry : fs::directory_iterator{folder.path() / "log"}) files.push_back(entry);
  ASSERT_EQ(files.size(), 1U);
  std::ifstream file{files[0], std::ios::binary};
  const std::string text{std::istreambuf_iterator<char>{file}, {}};
  expect_parts(text, {"brain.Event:2", "loss", "accuracy", "learning_rate", "step/seconds",
                      "step/images_per_second", "memory/near_peak_bytes", "memory/bytes_in",
                      "memory/bytes_out", "memory/faults", "test/loss", "test/accuracy"});
}

// ---- Page faults in timelines

TEST(TimelineOfPageFaults, ShowsThem) {
  const TemporaryFolder folder;
  const Outcome outcome =
      succeed({"train --net lenet --batch 64 --budget min --planner on-demand "
               "--steps 2 --eval-every 0 --json - --timeline",
               folder.file("timeline.json")});
  std::ifstream file{folder.file("timeline.json")};
  std::uint64_t predicted = 0;
  std::uint64_t measured = 0;
  const json trace = json::parse(file);
  for (const json& event : trace.at("traceEvents")) {
    if (event.at("ph") != "X") continue;
    const std::uint64_t faults = event.at("args").value("faults", std::uint64_t{0});
    (event.at("pid") == 1 ? predicted : measured) += faults;
  }
  EXPECT_GT(predicted, 0U);
  EXPECT_EQ(measured, json_lines(outcome).at(1).at("faults"));
}

}  // namespace
}  // namespace spillway::test
