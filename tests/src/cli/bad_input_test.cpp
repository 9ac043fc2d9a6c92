// Budgets that are too small, and paths that cannot be written. golden/refusals.txt has more.
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/mount.h>
#include <unistd.h>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>

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
