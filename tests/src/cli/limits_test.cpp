#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>
#include <string>

#include "tests/src/cli/shell.h"

// Where the system, or what the program is given, is beyond what it can work with.

namespace spillway::test {
namespace {

const char* const kOneStep = "train --net lenet --batch 8 --steps 1 --device host ";

using Limits = InShell;

// A sanitizer needs addresses and files of its own.
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

TEST_F(LimitsOfTheSystem, TooFewOpenFilesAreNamed) {
  // Whoever runs the tests may have left files open.
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

}  // namespace
}  // namespace spillway::test
