// Budgets that are invalid or too small.
// Data sets that are missing, cut short or invalid: refused before training starts.
// tests/src/io/data has more of them.
// Paths that cannot be written: detected before training starts, with no files left behind.
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/mount.h>
#include <unistd.h>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <initializer_list>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

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

TEST(BadBudget, SaysWhatABudgetLooksLike) {
  for (const char* budget : {"0", "-5", "-1MiB", "12Gib", "x", "0%", "-3%", "min-5%", "min+x%",
                             "nan", "1e400", "99999999999999999999999999%", "min+1e99%"}) {
    const std::string quoted = "'" + std::string{budget} + "' is no budget";
    expect_refused(2, small_training({"--budget", budget}), {quoted, "512MiB", "40%", "min+20%"});
    expect_refused(2, {kPlan, "--budget", budget}, {quoted});
    expect_refused(2, {"profile --net lenet --batch 8 --budget", budget}, {quoted});
  }
}

TEST(BadBudget, WithoutAUnitAsksWhatIsMeant) {
  for (const auto& [budget, sentence] : std::vector<std::pair<const char*, const char*>>{
           {"40", "--budget: '40' is 40 bytes; did you mean 40% or 40GiB?"},
           {"512", "--budget: '512' is 512 bytes; did you mean 512MiB or 512GiB?"},
           {"0.6", "--budget: '0.6' is a part of a byte; did you mean 60% or 0.6GiB?"}}) {
    expect_refused(2, small_training({"--budget", budget}), {sentence});
    expect_refused(2, {kPlan, "--budget", budget}, {sentence});
  }
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

TEST(BadBudget, MoreThanTheMachineHasIsRefused) {
  expect_refused(1, small_training("--budget 100TiB"),
                 {"100 TiB", "free", "give a smaller --budget"});
}

TEST(BadBudget, MoreThanTheMachineHasIsNotTakenByDefault) {
  // conv1_2 reads and writes 64 channels of 224x224 floats: 26 MB per image, 1.3 TB for fifty
  // thousand.
  const Arguments huge = "train --net vgg16 --batch 50000 --image-size 224 --steps 1";
  expect_refused(1, huge, {"too small", "conv1_2.forward", "smallest budget that works"});
}

TEST(BadBudget, OfResidentModeIsTheWholeNeed) {
  for (const char* budget : {"1200KiB", "min", "95%"}) {
    expect_refused(1, small_training({"--memory resident --budget", budget}),
                   {"too small", "smallest budget that works"});
  }
  const Outcome peak_with_workspace =
      run_spillway(small_training("--memory resident --budget 200% --json -"));
  EXPECT_GT(summary_of(peak_with_workspace).value("budget_bytes", 0), 0);
}

using IdxContent = std::vector<std::uint8_t>;

constexpr std::uint8_t kImages = 16;  // twice the batch
constexpr std::uint8_t kSide = 8;
constexpr std::size_t kCifarImage = 3 * 32 * 32;

// Returns labels 0 to 9 in turn.
IdxContent labels() {
  IdxContent content{0, 0, 8, 1, 0, 0, 0, kImages};
  for (std::uint8_t i = 0; i < kImages; ++i) content.push_back(i % 10);
  return content;
}

IdxContent images() {
  IdxContent content{0, 0, 8, 3, 0, 0, 0, kImages, 0, 0, 0, kSide, 0, 0, 0, kSide};
  for (int i = 0; i < kImages * kSide * kSide; ++i) {
    content.push_back(static_cast<std::uint8_t>(i * 7));
  }
  return content;
}

class BadIdx : public testing::Test {
 protected:
  BadIdx() {
    for (const char* split : {"train", "t10k"}) {
      folder_.write(std::string{split} + "-images-idx3-ubyte", images());
      folder_.write(std::string{split} + "-labels-idx1-ubyte", labels());
    }
  }

  [[nodiscard]] Arguments training() const {
    return small_training({"--data", "idx:" + folder_.path().string()});
  }

  TemporaryFolder folder_;
};

TEST_F(BadIdx, IsNotWhatTheseTestsStartFrom) { succeed(training()); }

TEST_F(BadIdx, FileThatIsMissingIsNamed) {
  for (const char* name : {"train-images-idx3-ubyte", "t10k-labels-idx1-ubyte"}) {
    std::filesystem::rename(folder_.file(name), folder_.file("away"));
    expect_refused(1, training(), {"there is no file", folder_.file(name), "put"});
    std::filesystem::rename(folder_.file("away"), folder_.file(name));
  }
}

TEST_F(BadIdx, FolderThatIsMissingIsNamed) {
  expect_refused(1, small_training("--data idx:/no/such/folder"), {"/no/such/folder"});
}

TEST_F(BadIdx, FileCutShortIsNoticedBeforeTraining) {
  IdxContent content = images();
  content.pop_back();
  folder_.write("t10k-images-idx3-ubyte", content);
  expect_refused(
      1, training(),
      {"t10k-images-idx3-ubyte has 1023 bytes after its header", "promises 1024", "again"});
}

TEST_F(BadIdx, LabelTheNetworkHasNoClassForIsNoticed) {
  IdxContent high = labels();
  high.back() = 200;
  folder_.write("t10k-labels-idx1-ubyte", high);
  expect_refused(1, training(), {"t10k-labels-idx1-ubyte go up to 200", "--classes 201"});
}

TEST_F(BadIdx, FewerImagesThanABatchAreNoticed) {
  const Arguments large = {"train --net lenet --batch 17 --data", "idx:" + folder_.path().string()};
  expect_refused(1, large, {"16 images", "batch of 17", "smaller --batch"});
}

class BadCifar10 : public testing::Test {
 protected:
  BadCifar10() {
    for (const char* name : {"data_batch_1", "data_batch_2", "data_batch_3", "data_batch_4",
                             "data_batch_5", "test_batch"}) {
      folder_.write(std::string{name} + ".bin", records({0, 9}));
    }
  }

  static IdxContent records(std::initializer_list<std::uint8_t> labels) {
    IdxContent content;
    for (const std::uint8_t label : labels) {
      content.push_back(label);
      content.insert(content.end(), kCifarImage, label);
    }
    return content;
  }
  [[nodiscard]] Arguments training() const {
    return {"train --net resnet18 --batch 2 --image-size 32 --steps 1 --data",
            "cifar10:" + folder_.path().string()};
  }

  TemporaryFolder folder_;
};

TEST_F(BadCifar10, IsNotWhatTheseTestsStartFrom) { succeed(training()); }

TEST_F(BadCifar10, LabelOutOfRangeIsNoticed) {
  folder_.write("data_batch_3.bin", records({1, 10}));
  expect_refused(1, training(), {"image 1 of", "data_batch_3.bin", "label 10", "0 to 9"});
}

TEST_F(BadCifar10, NeedsTenClasses) {
  expect_refused(1, {training(), "--classes 5"}, {"10 classes", "--classes 10"});
}

namespace fs = std::filesystem;

class BadPath : public testing::Test {
 protected:
  BadPath() { folder_.write("regular", {1, 2, 3}); }

  // A training that would run forever unless the path is checked first.
  [[nodiscard]] static Arguments endless(const Arguments& more) {
    return {"train --net lenet --batch 8 --epochs 1000000", more};
  }
  [[nodiscard]] std::string below_a_file() const { return folder_.file("regular") + "/x"; }
  [[nodiscard]] std::string nowhere() const { return folder_.file("nowhere/x"); }

  void expect_nothing_left() const {
    for (const auto& entry : fs::directory_iterator{folder_.path()}) {
      EXPECT_EQ(entry.path().filename(), "regular");
    }
    EXPECT_EQ(fs::file_size(folder_.file("regular")), 3U);
  }

  TemporaryFolder folder_;
};

TEST_F(BadPath, FarFileNeedsAFolderOrAPathNotYetThere) {
  const auto far = [&](const std::string& path) { return endless({"--far", "file:" + path}); };
  expect_refused(1, far(below_a_file()), {"far memory", below_a_file(), "no folder", "--far"});
  expect_refused(1, far(nowhere()), {"far memory", nowhere(), "no folder", "--far"});
  expect_refused(1, far(folder_.file("regular")), {"far memory", "exists", "folder"});
  expect_refused(1, far("/dev/full"), {"far memory", "/dev/full", "exists"});
  expect_refused(1, far("/proc"), {"far memory in /proc"});
  expect_nothing_left();
}

TEST_F(BadPath, OutputsAreTriedFirst) {
  for (const char* flag : {"--json", "--timeline"}) {
    for (const std::string& path : {below_a_file(), nowhere(), folder_.path().string()}) {
      expect_refused(1, endless({flag, path}), {"cannot write " + path});
    }
  }
  expect_nothing_left();
}

TEST_F(BadPath, CheckpointFolderIsTriedFirst) {
  for (const std::string& path : {below_a_file(), folder_.file("regular")}) {
    expect_refused(1, endless({"--checkpoint", path}), {"cannot make the folder " + path});
  }
  expect_refused(1, endless("--checkpoint /proc/nothing"), {"/proc/nothing"});
  expect_nothing_left();
}

TEST_F(BadPath, OutputsOfTheOtherSubcommandsAreTriedFirst) {
  const Arguments lenet = "--net lenet --batch 8";
  for (const char* flag : {"--out", "--timeline", "--json"}) {
    expect_refused(1, {"plan", flag, nowhere(), lenet}, {"cannot write " + nowhere()});
  }
  expect_refused(1, {"profile --out", nowhere(), lenet}, {"cannot write " + nowhere()});
  expect_refused(1, {"nets --json", nowhere()}, {"cannot write " + nowhere()});
  expect_refused(1, {"devices --json", nowhere()}, {"cannot write " + nowhere()});
  expect_nothing_left();
}

TEST_F(BadPath, RefusedTrainingLeavesNothingBehind) {
  const Arguments outputs = {"--json",       folder_.file("lines.json"),
                             "--timeline",   folder_.file("trace.json"),
                             "--checkpoint", folder_.file("a/b")};
  const Arguments far = {"--far", "file:" + folder_.path().string()};
  expect_refused(1, small_training({outputs, far, "--budget 1KiB"}), {"too small"});
  expect_refused(1, small_training({outputs, far, "--data", "idx:" + nowhere()}), {"no file"});
  expect_refused(1, small_training({outputs, "--memory resident --budget min"}), {"too small"});
  expect_nothing_left();
}

TEST_F(BadPath, TriedOutputsAreLeftAsTheyWere) {
  const std::string link = folder_.file("link.json");
  fs::create_symlink("target.json", link);
  for (const std::string& path : {link, folder_.file("regular")}) {
    expect_refused(1, small_training({"--json", path, "--budget 1KiB"}), {"too small"});
  }
  EXPECT_EQ(fs::read_symlink(link), "target.json");
  EXPECT_FALSE(fs::exists(folder_.file("target.json")));
  fs::remove(link);
  expect_nothing_left();
}

TEST_F(BadPath, LinkToNowhereIsWrittenThrough) {
  const std::string link = folder_.file("link.json");
  fs::create_symlink("target.json", link);

  succeed(small_training({"--json", link}));
  EXPECT_TRUE(fs::is_symlink(link));
  EXPECT_GT(fs::file_size(folder_.file("target.json")), 0U);
}

TEST_F(BadPath, LinkBelowAMissingFolderIsRefused) {
  const std::string link = folder_.file("link.json");
  fs::create_symlink("nowhere/target.json", link);
  expect_refused(1, endless({"--json", link}), {"cannot write " + link});
}

TEST_F(BadPath, FullOutputIsAFailure) {
  expect_refused(1, small_training("--json /dev/full"), {"cannot write /dev/full", "space"});
  expect_refused(1, "nets lenet --json /dev/full", {"cannot write /dev/full", "space"});
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

TEST_F(BadPath, FullDiskIsNoticedBeforeTraining) {
  const TinyDisk disk{folder_.file("disk")};
  if (!disk.is_there()) GTEST_SKIP() << "neither this process nor a namespace of it may mount";
  // Batch 64 needs 8 MiB, more than the disk has.
  const Arguments training = {"train --net lenet --batch 64 --steps 1 --far", "file:" + disk.path(),
                              "--budget min+20% --json -"};

  expect_refused(1, training, {"of far memory in " + disk.path(), "are free there", "--far"});

  EXPECT_TRUE(fs::is_empty(disk.path()));
}

}  // namespace
}  // namespace spillway::test
