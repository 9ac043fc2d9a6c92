// Places that cannot be written; found before training starts, and nothing is left behind.

#include <gtest/gtest.h>
#include <sched.h>
#include <sys/mount.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <utility>

#include "tests/src/cli/program.h"
#include "tests/src/cli/refused.h"
#include "tests/temporary_folder.h"

namespace spillway::test {
namespace {

namespace fs = std::filesystem;

class BadPath : public testing::Test {
 protected:
  BadPath() { folder_.write("regular", {1, 2, 3}); }

  // A training that would run for ever if the path were not looked at first.
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
  for (const char* flag : {"--json", "--trace"}) {
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
                             "--trace",      folder_.file("trace.json"),
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

// Makes this process root of a namespace of its own, where the system lets it; it stays there.
bool become_root_of_a_namespace() {
  const std::string user = std::to_string(geteuid());
  const std::string group = std::to_string(getegid());
  if (unshare(CLONE_NEWUSER | CLONE_NEWNS) != 0) return false;
  std::ofstream{"/proc/self/setgroups"} << "deny";
  std::ofstream{"/proc/self/uid_map"} << "0 " + user + " 1";
  std::ofstream{"/proc/self/gid_map"} << "0 " + group + " 1";
  return geteuid() == 0;
}

// A file system of a few MiB, where this process may mount one.
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
