#include <gtest/gtest.h>
#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <string>

#include "tests/src/cli/program.h"
#include "tests/temporary_folder.h"

namespace spillway::test {
namespace {

std::string text_of(const std::filesystem::path& path) {
  std::ifstream file{path};
  return {std::istreambuf_iterator<char>{file}, {}};
}

// The results of a shell's command.
struct ShellOutcome {
  int exit_code;
  std::string errors;  ///< content of the file "errors"
};

// Runs the program in a shell, for redirections and limits, in an empty folder.
class InShell : public testing::Test {
 protected:
  // `before` are shell commands to run first; `arguments` are for the program, with redirections.
  [[nodiscard]] ShellOutcome run(const std::string& arguments,
                                 const std::string& before = ":") const {
    const std::string command = "cd '" + folder_.path().string() +
                                "' && export SPILLWAY_CACHE=off && " + before +
                                " && exec timeout 120 '" + SPILLWAY_PROGRAM + "' " + arguments;
    const int status = std::system(command.c_str());  // NOLINT(cert-env33-c): a shell is wanted
    return {.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : -1,
            .errors = text_of(file("errors"))};
  }
  [[nodiscard]] std::filesystem::path file(const std::string& name) const {
    return folder_.path() / name;
  }

 private:
  TemporaryFolder folder_;
};

// A process that is bound to one processor, as by a launcher.
// With far memory in a file, the resident set grows with the budget, not with the network.
// Limits of the system or of the process that are too low to work with.

const char* const kOneStep = "train --net lenet --batch 8 --steps 1 --device host ";

using Limits = InShell;

// A sanitizer needs memory and files of its own.
class LimitsOfTheSystem : public InShell {
 protected:
  void SetUp() override {
#ifdef __SANITIZE_ADDRESS__
    GTEST_SKIP() << "the sanitizer does not start within the limit";
#endif
  }
};

TEST_F(LimitsOfTheSystem, BracketsAreRefusedWithLittleMemory) {
  std::ofstream{file("deep.json")} << std::string(50'000'000, '[');
  for (const char* const command :
       {"plan --trace-in deep.json --machine v100 --budget 1GiB", "report deep.json",
        "plan --net lenet --batch 8 --budget 100% --machine ./deep.json",
        "plan --net lenet --batch 8 --budget 100% --profile deep.json",
        "train --net lenet --batch 8 --device host --plan deep.json"}) {
    const ShellOutcome outcome = run(std::string{command} + " 2>errors", "ulimit -v 1500000");
    EXPECT_EQ(outcome.exit_code, 1) << command << ": " << outcome.errors;
    EXPECT_NE(outcome.errors.find("deep.json: nests more than 64 levels deep, at byte 65"),
              std::string::npos)
        << command << ": " << outcome.errors;
  }
}

// oneDNN's code generator ends a program where it gets no memory.
TEST_F(LimitsOfTheSystem, TooFewAddressesAreNamed) {
  int refused = 0;
  for (int kibibytes = 180'000; kibibytes <= 420'000; kibibytes += 20'000) {
    const ShellOutcome outcome = run(std::string{kOneStep} + "--threads 2 2>errors",
                                     "ulimit -v " + std::to_string(kibibytes));
    if (outcome.exit_code == 0) continue;
    ++refused;
    EXPECT_EQ(outcome.exit_code, 1) << kibibytes << ": " << outcome.errors;
    EXPECT_NE(outcome.errors.find("spillway: "), std::string::npos) << outcome.errors;
    EXPECT_EQ(outcome.errors.find("bug in spillway"), std::string::npos) << outcome.errors;
  }
  EXPECT_GT(refused, 0) << "no limit was too low";
}

TEST_F(LimitsOfTheSystem, TooFewOpenFilesAreNamed) {
  // The test process may have inherited open files.
  const ShellOutcome outcome =
      run(kOneStep, "exec 2>errors 3>&- 4>&- 5>&- 6>&- 7>&- 8>&- 9>&- && ulimit -n 4");
  EXPECT_EQ(outcome.exit_code, 1);
  EXPECT_NE(outcome.errors.find("raise this program's limit of open files (ulimit -n)"),
            std::string::npos)
      << outcome.errors;
}

TEST_F(LimitsOfTheSystem, TooFewProcessesAreNamed) {
  if (geteuid() == 0) GTEST_SKIP() << "the limit is not for root";
  const ShellOutcome outcome = run(kOneStep, "exec 2>errors && ulimit -u 1");
  EXPECT_EQ(outcome.exit_code, 1);
  EXPECT_NE(outcome.errors.find("raise the limit of processes (ulimit -u)"), std::string::npos)
      << outcome.errors;
}

TEST_F(Limits, LongNamesAreShortened) {
  for (const char* const command :
       {"train --batch 8 --net ", "plan --net lenet --batch 8 --budget 100% --machine ",
        "train --net lenet --batch 8 --data idx:", "train --net lenet --batch 8 --plan ",
        "train --net lenet --batch 8 --budget ", "train --net lenet --batch 8 --planner ",
        "report ", "train --no-such-", "no-such-"}) {
    const ShellOutcome outcome = run(command + std::string(100'000, 'x') + " 2>errors");
    EXPECT_NE(outcome.exit_code, 0);
    EXPECT_NE(outcome.errors.find("bytes...]"), std::string::npos) << command;
    EXPECT_LT(outcome.errors.size(), 4500U) << command << outcome.errors;
  }
}

TEST_F(Limits, MoreThreadsThanProcessorsAreWorthAWarning) {
  const std::string threads = std::to_string(sysconf(_SC_NPROCESSORS_ONLN) + 1);
  const ShellOutcome outcome = run(kOneStep + ("--threads " + threads + " 2>errors"));
  EXPECT_EQ(outcome.exit_code, 0) << outcome.errors;
  EXPECT_NE(outcome.errors.find("warning: " + threads + " threads share "), std::string::npos)
      << outcome.errors;
}

// Binds this process and its children to the first processor that it may use.
class OneProcessor : public ::testing::Test {
 protected:
  OneProcessor() {
    CPU_ZERO(&before_);
    EXPECT_EQ(sched_getaffinity(0, sizeof(before_), &before_), 0);
    std::size_t first = 0;
    while (first + 1 < CPU_SETSIZE && !CPU_ISSET(first, &before_)) ++first;
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(first, &one);
    EXPECT_EQ(sched_setaffinity(0, sizeof(one), &one), 0);
  }
  ~OneProcessor() override { sched_setaffinity(0, sizeof(before_), &before_); }

 private:
  cpu_set_t before_;
};

// Another thread must give the plan's hints; otherwise there would be page faults.
TEST_F(OneProcessor, HasAThreadForHints) {
  for (const char* const memory : {"managed", "copy"}) {
    const Outcome outcome = run_spillway(
        {"train --net lenet --batch 32 --steps 3 --eval-every 0 --budget min --json - --memory",
         memory});
    const nlohmann::json summary = summary_of(outcome);
    EXPECT_GT(summary.value("bytes_prefetched", 0), 0);
    EXPECT_EQ(summary.value("faults", -1), 0);
    EXPECT_EQ(outcome.errors.find("TBB"), std::string::npos) << outcome.errors;
  }
}

using nlohmann::json;

constexpr std::int64_t kMebibyte = 1 << 20;

class ResidentSet : public testing::Test {
 protected:
  void SetUp() override {
    if (SPILLWAY_SLOW_BUILD != 0)
      GTEST_SKIP() << "a slow build: sanitizers take memory of their own";
  }

  // SqueezeNet at 112x112: about 4 MiB of activations per image, and few operations per byte.
  [[nodiscard]] json train(int batch, std::int64_t budget, const std::string& memory) const {
    const json summary = summary_of({"train --net squeezenet --batch", std::to_string(batch),
                                     "--image-size 112 --steps 2 --conv-algorithm direct",
                                     "--budget", std::to_string(budget), "--memory", memory,
                                     "--far", "file:" + folder_.path().string(), "--json -"});
    EXPECT_LE(summary.value("near_peak_bytes", budget + 1), budget);
    return summary;
  }
  static std::int64_t resident_set(const json& summary) {
    return summary.value("peak_resident_set_bytes", std::int64_t{0});
  }
  static std::int64_t need(const json& summary) {
    return summary.value("resident_bytes", std::int64_t{0});
  }

  TemporaryFolder folder_;
};

// Batch 16 needs about 64 MiB and batch 32 about 123. Both exceed the 58 MiB that both may use,
// and 123 MiB exceeds the `roomy` budget. Beside the budget a process holds code, data set and
// batches. Batches grow by 2.5 MiB from 16 to 32 images, several times: the loader's, the
// trainer's, and a copy in flight.
TEST_F(ResidentSet, GrowsWithTheBudgetAndNotWithTheNetwork) {
  constexpr std::int64_t kTight = 58 * kMebibyte;
  constexpr std::int64_t kRoomy = 115 * kMebibyte;
  for (const char* memory : {"managed", "copy"}) {
    SCOPED_TRACE(memory);
    const json small = train(16, kTight, memory);
    const json large = train(32, kTight, memory);
    const json roomy = train(32, kRoomy, memory);

    ASSERT_GT(need(small), kTight);
    ASSERT_GT(need(large), kRoomy);
    EXPECT_LT(resident_set(large) - resident_set(small), (need(large) - need(small)) / 3);
    EXPECT_GT(resident_set(roomy) - resident_set(large), (kRoomy - kTight) * 3 / 4);
    EXPECT_LT(resident_set(roomy) - resident_set(large), (kRoomy - kTight) * 5 / 4);
  }
}

// Standard streams that are full or closed.

const char* const kTwoSteps =
    "train --net lenet --batch 8 --steps 2 --device host --budget min+50% ";

// Makes descriptor 4 a pipe without a reader.
const char* const kBrokenPipe = "rm -f pipe errors && mkfifo pipe && exec 3<>pipe 4>pipe 3<&-";

using StandardStreams = InShell;

std::string last_line_of(const std::string& text) {
  const std::size_t end = text.rfind('\n');
  return text.substr(text.rfind('\n', end - 1) + 1);
}

TEST_F(StandardStreams, TrainingGoesOnWithoutAPlaceForItsNotes) {
  for (const char* const nowhere : {"2>/dev/full", "2>&-"}) {
    const std::string training = std::string{kTwoSteps} + "--json lines ";
    EXPECT_EQ(run(training + nowhere).exit_code, 0) << nowhere;
    EXPECT_NE(last_line_of(text_of(file("lines"))).find("weights_sha256"), std::string::npos);
  }
}

TEST_F(StandardStreams, NoFileTakesThePlaceOfAStreamThatIsClosed) {
  EXPECT_EQ(run(std::string{kTwoSteps} + "--json lines 0<&- 1>&- 2>&-").exit_code, 0);
  EXPECT_EQ(text_of(file("lines")).find("smallest feasible"), std::string::npos);
}

TEST_F(StandardStreams, WhatCannotBeWrittenToStandardOutputIsAFailure) {
  for (const char* const command :
       {"nets", "nets lenet", "nets --json -", "devices", "devices --json -",
        "plan --net lenet --batch 8 --machine v100 --budget 100%",
        "plan --net lenet --batch 8 --machine v100 --budget 100% --json -",
        "sweep --net lenet --batch 8 --machines v100 --planners resident --budgets 100%",
        "document man", "document bash", "--help", "--version", "train --help",
        "train --net lenet --batch 8 --steps 1 --device host --json -"}) {
    for (const char* const nowhere : {">/dev/full", ">&-"}) {
      const ShellOutcome outcome = run(std::string{command} + " " + nowhere + " 2>errors");
      EXPECT_EQ(outcome.exit_code, 1) << command << " " << nowhere << "\n" << outcome.errors;
      EXPECT_NE(outcome.errors.find("spillway: cannot write to standard output"), std::string::npos)
          << command << " " << nowhere << "\n"
          << outcome.errors;
      EXPECT_EQ(outcome.errors.find("bug in spillway"), std::string::npos) << outcome.errors;
    }
  }
}

TEST_F(StandardStreams, TrainingGoesOnWhenNobodyReadsItsNotes) {
  EXPECT_EQ(run(std::string{kTwoSteps} + "--json lines 2>&4", kBrokenPipe).exit_code, 0);
  EXPECT_NE(last_line_of(text_of(file("lines"))).find("weights_sha256"), std::string::npos);
}

// As `spillway --help | head` does: without a word, as other programs. A training says how to go
// on.
TEST_F(StandardStreams, AnOutputThatNobodyReadsEndsTheProgramSilently) {
  for (const char* const command :
       {"nets", "--help", "train --help-all", "document man", "devices --json -",
        "plan --net lenet --batch 8 --machine v100 --budget 100% --json -"}) {
    const ShellOutcome outcome = run(std::string{command} + " >&4 2>errors", kBrokenPipe);
    EXPECT_EQ(outcome.exit_code, 128 + SIGPIPE) << command;
    EXPECT_EQ(outcome.errors.find("spillway: "), std::string::npos) << command << outcome.errors;
  }
  const ShellOutcome training =
      run("train --net lenet --batch 8 --steps 1 --device host --json - >&4 2>errors", kBrokenPipe);
  EXPECT_EQ(training.exit_code, 1);
  EXPECT_NE(training.errors.find("spillway: cannot write to standard output"), std::string::npos)
      << training.errors;
}

// Failing to write output stops a training as a signal does.
TEST_F(StandardStreams, TrainingSavesItsStepWhenItsOutputIsFull) {
  const std::string training =
      "train --net lenet --batch 8 --steps 30 --device host --checkpoint run --checkpoint-every "
      "20 ";
  for (const char* const full : {"--json /dev/full", "--json - >/dev/full", "--json - >&4"}) {
    const ShellOutcome outcome =
        run(training + full + " 2>errors", std::string{"rm -rf run; "} + kBrokenPipe);
    EXPECT_EQ(outcome.exit_code, 1) << full;
    EXPECT_NE(outcome.errors.find("; the checkpoint is of step 1, and --resume goes on from there"),
              std::string::npos)
        << outcome.errors;
    EXPECT_EQ(run(training + "--resume 2>errors").exit_code, 0);
  }
}

// Each file is written even if others fail.
TEST_F(StandardStreams, TrainingWritesWhatItCanAtItsEnd) {
  const ShellOutcome outcome =
      run("train --net lenet --batch 8 --steps 2 --device host --eval-every 2 --confusion "
          "/dev/full --timeline trace --json lines 2>errors");
  EXPECT_EQ(outcome.exit_code, 1);
  EXPECT_NE(outcome.errors.find("cannot write /dev/full"), std::string::npos) << outcome.errors;
  EXPECT_NE(outcome.errors.find("weights "), std::string::npos) << outcome.errors;
  EXPECT_NE(text_of(file("trace")).find("traceEvents"), std::string::npos);
}

TEST_F(StandardStreams, ACommandThatSaysNothingNeedsNoStandardOutput) {
  EXPECT_EQ(run(std::string{kTwoSteps} + ">&- 2>errors").exit_code, 0);
  EXPECT_EQ(run(std::string{kTwoSteps} + ">/dev/full 2>errors").exit_code, 0);
}

}  // namespace
}  // namespace spillway::test
