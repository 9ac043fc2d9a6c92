#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

#include "tests/src/cli/program.h"
#include "tests/temporary_folder.h"

// A far file that changes during a training, as on a failing disk.

namespace spillway::test {
namespace {

namespace fs = std::filesystem;

/// Opens a process's far file, which has no name. Returns -1 when there is none.
int open_far_file(pid_t process, const fs::path& folder) {
  const fs::path descriptors = "/proc/" + std::to_string(process) + "/fd";
  std::error_code ended;
  for (const auto& entry : fs::directory_iterator{descriptors, ended}) {
    const std::string target = fs::read_symlink(entry.path(), ended).string();
    if (!target.starts_with(folder.string() + "/") || !target.ends_with("(deleted)")) continue;
    return open(entry.path().c_str(), O_WRONLY | O_CLOEXEC);
  }
  return -1;
}

/// Overwrites the whole file once.
void spoil(int file) {
  const std::vector<char> rubbish(1U << 20U, '\x5a');
  const off_t size = lseek(file, 0, SEEK_END);
  for (off_t at = 0; at < size; at += static_cast<off_t>(rubbish.size())) {
    const auto left = static_cast<std::size_t>(size - at);
    if (pwrite(file, rubbish.data(), std::min(rubbish.size(), left), at) <= 0) return;
  }
}

class FarDamage : public testing::TestWithParam<const char*> {};

INSTANTIATE_TEST_SUITE_P(Modes, FarDamage, testing::Values("managed", "copy"),
                         [](const auto& mode) { return std::string{mode.param}; });

TEST_P(FarDamage, EndsATrainingThatGoesOnFromItsLastCheckpointWithTheSameBits) {
  const TemporaryFolder folder;
  const fs::path checkpoint = folder.path() / "checkpoint" / "checkpoint.json";
  const Arguments training =
      "train --net lenet --batch 128 --seed 4 --json - --conv-algorithm direct";
  const Arguments kept = {"--checkpoint", checkpoint.parent_path().string(), "--memory",
                          GetParam()};
  Program program{{training, kept, "--steps 1000 --checkpoint-every 1 --planner capacity",
                   "--budget min+10% --far", "file:" + folder.path().string(),
                   "--link-bandwidth 100MB/s"}};  // keeps blocks far for long
  program.wait_for_lines(3);
  ASSERT_TRUE(fs::exists(checkpoint));
  const int file = open_far_file(program.process(), folder.path());
  ASSERT_GE(file, 0);
  // All through steps: only what is far at the moment is harmed.
  std::jthread spoiler{[file](const std::stop_token& stop) {
    while (!stop.stop_requested()) spoil(file);
  }};
  const Outcome outcome = program.finish();
  spoiler.request_stop();
  spoiler.join();
  close(file);
  EXPECT_EQ(outcome.exit_code, kFailure);
  EXPECT_NE(outcome.errors.find("spillway: far memory in " + folder.path().string() +
                                " is damaged: the 4 KiB at byte "),
            std::string::npos)
      << outcome.errors;

  const auto step = nlohmann::json::parse(std::ifstream{checkpoint}).at("step").get<int>();
  const Arguments end = {"--steps", std::to_string(step + 2)};
  const nlohmann::json resumed = summary_of(run_spillway({training, kept, end, "--resume"}));
  const nlohmann::json whole = summary_of(run_spillway({training, end, "--memory resident"}));
  EXPECT_EQ(resumed["weights_sha256"], whole["weights_sha256"]);
}

}  // namespace
}  // namespace spillway::test
