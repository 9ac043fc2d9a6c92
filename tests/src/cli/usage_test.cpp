// Help, and notes about flags without effect. golden/refusals.txt has the errors.

#include <gtest/gtest.h>

#include <algorithm>
#include <sstream>
#include <string>
#include <vector>

#include "tests/src/cli/program.h"

namespace spillway::test {
namespace {

const Arguments kSubcommands = "train plan sweep profile bench report export nets devices document";

// Letters of the longest line that could have been broken.
std::size_t longest_line(const std::string& help) {
  std::istringstream lines{help};
  std::size_t longest = 0;
  for (std::string line; std::getline(lines, line);) {
    const std::size_t text = std::min(line.find_first_not_of(' '), line.size());
    const bool is_whole = line.starts_with("Example: ") || line.find(' ', text) == line.npos;
    if (!is_whole) longest = std::max(longest, line.size());
  }
  return longest;
}

TEST(Help, FitsTheTerminal) {
  for (const char* const command : {"", "train", "plan", "sweep", "bench", "bench train"}) {
    for (const char* const flag : {"--help", "--help-all"}) {
      EXPECT_LE(longest_line(succeed({command, flag}).output), 80U) << command << flag;
    }
  }
}

TEST(Help, ShowsFirstWhatIsUsuallyEnough) {
  const std::string brief = succeed("train --help").output;
  expect_parts(brief, {"Usually enough:\n", "\n  --budget ", "\n  --far ",
                       "\nspillway train --help-all shows all "});
  EXPECT_EQ(brief.find("--momentum"), std::string::npos);
  EXPECT_LT(std::ranges::count(brief, '\n'), 60);
  expect_parts(succeed("train --help-all").output, {"\n  --budget ", "\n  --momentum "});
}

TEST(Documents, NameEverySubcommandAndTheFlagsOfTraining) {
  for (const char* format : {"man", "bash", "zsh"}) {
    const Outcome outcome = succeed({"document", format});
    expect_parts(outcome.output, kSubcommands);
    expect_parts(outcome.output, {"budget", "momentum", "joint"});
  }
}

TEST(Documents, CompleteNetworksAndMemoryModes) {
  for (const char* shell : {"bash", "zsh"}) {
    const std::string script = run_spillway({"document", shell}).output;

    expect_parts(script, {"'train --net') choices='lenet ",
                          "'train --memory') choices='auto managed copy resident'",
                          "'bench train --net') choices='lenet "});
  }
}

// Modes are compared by changing one word of a command line.
TEST(Usage, NotesWhatAnotherMemoryModeHas) {
  const std::vector<std::string> of_moves{
      "--planner capacity", "--recompute auto",    "--state near",           "--update auto",
      "--far ram",          "--far-checksums off", "--link-bandwidth 2GB/s", "--link-latency 1us"};
  const std::vector<std::string> of_managed{"--fault-latency 1us", "--paging memfd",
                                            "--oversubscribe", "--discard on"};
  const auto expect_useless = [](const Arguments& command, const std::string& memory,
                                 const std::vector<std::string>& flags) {
    for (const std::string& flag : flags) {
      const Outcome outcome = run_spillway({command, "--memory", memory, flag.c_str()});
      EXPECT_NE(outcome.exit_code, kBadUsage) << outcome.errors;
      expect_parts(outcome.errors, {"note: " + flag.substr(0, flag.find(' ')) +
                                    " does nothing with --memory " + memory + "\n"});
    }
  };
  expect_useless(small_training(), "resident", of_moves);
  expect_useless(small_training(), "resident", of_managed);
  expect_useless(small_training(), "copy", of_managed);
  expect_useless("evaluate nowhere", "copy", of_managed);
  expect_useless("predict nowhere", "resident", of_moves);
  expect_useless("profile --net lenet --batch 2", "resident", {"--far ram", "--paging memfd"});
  expect_useless("plan --net lenet --batch 2 --machine v100", "resident",
                 {"--planner capacity", "--state far"});
  const std::string everything =
      summary_of(succeed(small_training(
                     "--memory resident --json - --planner capacity --far file:/no/where "
                     "--link-bandwidth 2GB/s --state far --update far --paging memfd")))
          .value("weights_sha256", "");
  EXPECT_EQ(
      everything,
      summary_of(small_training("--memory resident --json -")).value("weights_sha256", "none"));
  succeed(
      {"train --net lenet --batch 2 --steps 1 --memory copy --planner capacity --far ram "
       "--far-checksums off --link-latency 1us --recompute off --state near --update near"});
}

// The GPU's error depends on the machine: no CUDA build, no driver, no GPU, or none with number
// 999.
TEST(BadInput, SaysWhatCannotBe) {
  expect_refused(kFailure, small_training("--device cuda:999"), {"CUDA cannot be used: "});
  expect_refused(kFailure, "train --net gpt:1,2,16,8 --batch 2 --steps 1 --attention cudnn",
                 {"cuDNN has no attention for this", "NVIDIA GPU", "--attention cudnn"});
}

TEST(Devices, AreShownWithoutThreadsToo) {
  const Outcome outcome = succeed("devices", "OMP_THREAD_LIMIT=1");
  expect_parts(outcome.output,
               {"unified memory, userfaultfd", "transparent huge pages", "bfloat16"});
}

}  // namespace
}  // namespace spillway::test
