// Budgets that are too small, and paths that cannot be written. golden/refusals.txt has more.
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/mount.h>
#include <unistd.h>

#include <csignal>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>

#include "src/train/checkpoint/checkpoint.h"
#include "tests/src/cli/program.h"
#include "tests/temporary_folder.h"

namespace spillway::test {
namespace {

using nlohmann::json;

const Arguments kPlan = "plan --net lenet --batch 8";

// Returns the number before " bytes (".
std::string smallest_budget_in(const std::string& sentence) {
  const std::size_t end = sentence.find(" bytes (");
  if (end == std::string::npos) return {};
  return sentence.substr(sentence.rfind(' ', end - 1) + 1, end - sentence.rfind(' ', end - 1) - 1);
}

TEST(BadBudget, TooSmallNamesTheTaskItsNeedAndABudgetThatWorks) {
  for (const char* budget : {"1B", "1KiB", "400KiB", "1%"}) {
    const std::string sentence =
        expect_refused(1, small_training({"--budget", budget}),
                       {"too small: task ", " needs most", "smallest budget that works"});
    const std::string smallest = smallest_budget_in(sentence);

    const json summary = summary_of(small_training({"--budget", smallest, "--json -"}));

    EXPECT_EQ(summary.value("budget_bytes", 0U), std::stoull(smallest));
    EXPECT_LE(summary.value("near_peak_bytes", ~0U), std::stoull(smallest));
  }
}

TEST(BadBudget, OneByteLessThanTheSmallestIsTooSmall) {
  const std::string sentence = expect_refused(1, small_training("--budget 1KiB"), {});
  const auto smallest = std::stoull(smallest_budget_in(sentence));

  expect_refused(1, small_training({"--budget", std::to_string(smallest - 1)}), {"too small"});
}

TEST(BadBudget, OfAPlannerIsTheOneItNamed) {
  const Arguments resident = {kPlan, "--planner resident --budget"};
  const std::string sentence =
      expect_refused(1, {resident, "min"}, {"too small", "smallest budget that works"});

  succeed({resident, smallest_budget_in(sentence)});
}

// Returns the JSON of a plan that must fail.
json facts_of(const Outcome& outcome) {
  EXPECT_EQ(outcome.exit_code, kFailure);
  json facts = json::parse(outcome.output);
  EXPECT_EQ(facts.at("feasible"), false);
  return facts;
}

TEST(BadBudget, InfeasiblePlanSaysSoInJsonToo) {
  const json facts = facts_of(run_spillway({kPlan, "--budget 1KiB --json -"}));
  EXPECT_EQ(facts.at("budget_bytes"), 1024);
  EXPECT_GT(facts.at("min_budget_bytes"), 1024);
}

TEST(BadBudget, InJsonTheSmallestIsThatOfThePlanner) {
  const Outcome outcome = run_spillway({kPlan, "--planner resident --budget min --json -"});
  const json facts = facts_of(outcome);
  EXPECT_EQ(facts.at("planner"), "resident");
  EXPECT_EQ(std::to_string(facts.at("min_budget_bytes").get<std::uint64_t>()),
            smallest_budget_in(outcome.errors));
}

TEST(BadBudget, OfResidentModeIsTheWholeNeed) {
  const Outcome peak_with_workspace =
      run_spillway(small_training("--memory resident --budget 200% --json -"));
  EXPECT_GT(summary_of(peak_with_workspace).value("budget_bytes", 0), 0);
}

namespace fs = std::filesystem;

TEST(BadPath, LinkToNowhereIsWrittenThrough) {
  const TemporaryFolder folder;
  const std::string link = folder.file("link.json");
  fs::create_symlink("target.json", link);

  succeed(small_training({"--json", link}));
  EXPECT_TRUE(fs::is_symlink(link));
  EXPECT_GT(fs::file_size(folder.file("target.json")), 0U);
}

// Makes this process root in a new namespace, if the system allows it; it stays there.
bool become_root_of_a_namespace() {
  const std::string user = std::to_string(geteuid());
  const std::string group = std::to_string(getegid());
  if (unshare(CLONE_NEWUSER | CLONE_NEWNS) != 0) return false;
  std::ofstream{"/proc/self/setgroups"} << "deny";
  std::ofstream{"/proc/self/uid_map"} << "0 " + user + " 1";
  std::ofstream{"/proc/self/gid_map"} << "0 " + group + " 1";
  return geteuid() == 0;
}

// A file system of a few MiB, if this process may mount one.
class TinyDisk {
 public:
  explicit TinyDisk(std::string path) : path_{std::move(path)} {
    fs::create_directories(path_);
    is_there_ = is_mounted() || (become_root_of_a_namespace() && is_mounted());
  }
  TinyDisk(const TinyDisk&) = delete;
  TinyDisk& operator=(const TinyDisk&) = delete;
  ~TinyDisk() {
    if (is_there_) umount2(path_.c_str(), MNT_DETACH);
  }

  [[nodiscard]] bool is_there() const { return is_there_; }
  [[nodiscard]] const std::string& path() const { return path_; }

 private:
  [[nodiscard]] bool is_mounted() const {
    return mount("spillway-test", path_.c_str(), "tmpfs", 0, "size=4m") == 0;
  }

  std::string path_;
  bool is_there_ = false;
};

TEST(BadPath, FullDiskIsNoticedBeforeTraining) {
  const TemporaryFolder folder;
  const TinyDisk disk{folder.file("disk")};
  if (!disk.is_there()) GTEST_SKIP() << "neither this process nor a namespace of it may mount";
  // Batch 64 needs 8 MiB, more than the disk has.
  const Arguments training = {"train --net lenet --batch 64 --steps 1 --far", "file:" + disk.path(),
                              "--budget min+20% --json -"};

  expect_refused(1, training, {"of far memory in " + disk.path(), "are free there", "--far"});

  EXPECT_TRUE(fs::is_empty(disk.path()));
}

}  // namespace
}  // namespace spillway::test

namespace spillway {
namespace {

// Checkpoints that are missing, belong to another training, or are damaged.

namespace fs = std::filesystem;

using nlohmann::json;
using test::Arguments;
using test::expect_refused;
using test::Outcome;
using test::Program;
using test::run_spillway;
using test::TemporaryFolder;

class BadCheckpoint : public testing::Test {
 protected:
  [[nodiscard]] std::string path() const { return folder_.file("checkpoint"); }
  [[nodiscard]] std::string description() const { return path() + "/checkpoint.json"; }
  [[nodiscard]] std::string tensors() const { return path() + "/step-2.safetensors"; }

  [[nodiscard]] Arguments training() const {
    return {"train --net lenet --batch 8 --seed 1 --steps 2 --checkpoint", path()};
  }
  [[nodiscard]] Arguments resumed() const { return {training(), "--resume"}; }

  void make_checkpoint() const {
    const Outcome outcome = run_spillway(training());
    ASSERT_EQ(outcome.exit_code, 0) << outcome.errors;
    ASSERT_TRUE(fs::exists(description()));
    ASSERT_TRUE(fs::exists(tensors()));
  }

  TemporaryFolder folder_;
};

// A digest does not protect from a user who can write the file.
TEST_F(BadCheckpoint, OfABatchThatNoTrainingHasIsRefused) {
  make_checkpoint();
  const json whole = json::parse(std::ifstream{description()});
  for (const std::uint64_t batch :
       {std::uint64_t{0}, (std::uint64_t{1} << 20U) + 1, std::uint64_t{1} << 63U}) {
    json changed = whole;
    changed["batch"] = batch;
    const std::string text = sealed(changed);
    std::ofstream{description()} << text;
    std::ofstream{path() + "/step-2.json"} << text;
    for (const Arguments& command : {Arguments{"evaluate", path()}, Arguments{"predict", path()},
                                     resumed(), Arguments{"checkpoint verify", path()}}) {
      const Outcome outcome = run_spillway(command);
      EXPECT_EQ(outcome.exit_code, 1);
      EXPECT_EQ(outcome.errors.find("a bug in"), std::string::npos) << outcome.errors;
      test::expect_parts(outcome.errors + outcome.output, {": batch is "});
    }
  }
}

TEST_F(BadCheckpoint, IsShownByVerify) {
  make_checkpoint();
  const Outcome whole = run_spillway({"checkpoint verify", path()});
  EXPECT_EQ(whole.exit_code, 0) << whole.errors;
  EXPECT_NE(whole.output.find("checkpoint.json: step 2 verifies, "), std::string::npos);
  fs::resize_file(tensors(), fs::file_size(tensors()) - 1);

  const Outcome outcome =
      run_spillway({"checkpoint verify", path(), "--json", folder_.file("findings.json")});

  EXPECT_EQ(outcome.exit_code, 1);
  EXPECT_NE(outcome.output.find("step-2.json: DOES NOT VERIFY: " + tensors() + " has "),
            std::string::npos)
      << outcome.output;
  EXPECT_EQ(outcome.errors, "spillway: 2 of 2 manifests in " + path() + " do not verify\n");
  json findings;
  std::ifstream{folder_.file("findings.json")} >> findings;
  EXPECT_EQ(findings.at("manifests").at(0).at("verified"), false);
}

TEST_F(BadCheckpoint, OfAnotherRunningTrainingIsRefused) {
  Program program{{"train --net lenet --batch 8 --epochs 1000000 --json - --checkpoint", path()}};
  program.wait_for_lines(1);
  expect_refused(1, training(), {"the folder " + path() + " is in use by process ", " since "});
  program.signal(SIGTERM);
  EXPECT_EQ(program.finish().exit_code, 128 + SIGTERM);
}

}  // namespace
}  // namespace spillway

namespace spillway::test {
namespace {

// Plans and profiles that belong to another step, or were changed by hand.

using nlohmann::json;

class BadPlan : public testing::Test {
 protected:
  // Makes a plan of `small_training` that moves blocks.
  BadPlan() {
    succeed({"plan --net lenet --batch 8 --budget min --state near --recompute off --out", path()});
    std::ifstream{path()} >> plan_;
    EXPECT_FALSE(plan_.at("offloads").empty());
    EXPECT_FALSE(plan_.at("prefetches").empty());
  }

  [[nodiscard]] std::string path() const { return folder_.file("plan.json"); }
  [[nodiscard]] Arguments training(const Arguments& more = {}) const {
    return {small_training({"--plan", path()}), more};
  }

  void expect_refused_when(const std::function<void(json&)>& tamper,
                           const std::vector<std::string>& words,
                           const Arguments& flags = {}) const {
    json plan = plan_;
    tamper(plan);
    std::ofstream{path()} << plan;
    expect_refused(1, training(flags), words);
  }

  TemporaryFolder folder_;
  json plan_;
};

TEST_F(BadPlan, IsNotWhatTheseTestsStartFrom) { succeed(training()); }

TEST_F(BadPlan, ThatForgetsSomethingIsRefusedByTheVerifier) {
  const std::vector<std::function<void(json&)>> tamperings{
      [](json& plan) {
        plan["offloads"] = json::array();
        plan["prefetches"] = json::array();
        for (json& run : plan["runs"]) run["after"] = {run["after"][0], 0, 0};
      },
      [](json& plan) { plan["prefetches"].erase(0); },
      [](json& plan) {
        for (json& move : plan["prefetches"]) move["after"] = {0, 0, 0};
      },
      [](json& plan) { plan["runs"].erase(5); },
      [](json& plan) { std::swap(plan["runs"][3], plan["runs"][4]); }};
  for (const auto& tamper : tamperings) expect_refused_when(tamper, {"plan.json must not run"});
}

TEST_F(BadPlan, WithASmallerBudgetThanItsPeakIsRefusedByTheVerifier) {
  constexpr std::uint64_t kPage = 4096;
  expect_refused_when(
      [](json& plan) { plan["budget_bytes"] = plan["budget_bytes"].get<std::uint64_t>() - kPage; },
      {"plan.json must not run"}, "--budget min");
}

TEST_F(BadPlan, WithABudgetThatTheMachineDoesNotHaveIsRefused) {
  expect_refused_when([](json& plan) { plan["budget_bytes"] = 1ULL << 50U; },
                      {"1024 TiB", "free", "give a smaller --budget to spillway plan"});
}

// tests/prefetch/files tests other errors in plans.
TEST_F(BadPlan, SaysWhichMemberIsWrong) {
  expect_refused_when([](json& plan) { plan["runs"][1]["algorithm"] = "magic"; },
                      {"plan.json: runs[1].algorithm", "'magic'", "conv1.forward"});
  expect_refused_when([](json& plan) { plan["offloads"][0]["size_bytes"] = -1; },
                      {"plan.json: offloads[0].size_bytes", "whole number"});
  expect_refused_when([](json& plan) { plan["page_bytes"] = 8192; }, {"plan.json", "page"});
}

TEST(BadProfile, SaysWhichMemberIsWrong) {
  const TemporaryFolder folder;
  const std::string path = folder.file("profile.json");
  succeed({"profile --net lenet --batch 8 --out", path});
  json profile = json::parse(std::ifstream{path});
  profile["tasks"][1]["duration_ns"] = json::object();
  std::ofstream{path} << profile;
  expect_refused(1, small_training({"--profile", path}),
                 {"profile.json: tasks[1].duration_ns.direct is missing"});
}

TEST(ModelProfile, IsTheSameEachTimeAndTrains) {
  const TemporaryFolder folder;
  for (const char* name : {"first", "second"}) {
    succeed({"profile --net lenet --batch 8 --machine host --out", folder.file(name)});
  }
  const json first = json::parse(std::ifstream{folder.file("first")});
  EXPECT_EQ(first, json::parse(std::ifstream{folder.file("second")}));
  succeed(small_training({"--profile", folder.file("first")}));
}

}  // namespace
}  // namespace spillway::test
