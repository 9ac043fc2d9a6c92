#include <gtest/gtest.h>

#include <csignal>
#include <string>

#include "tests/src/cli/shell.h"

// Standard streams that are full or closed.

namespace spillway::test {
namespace {

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
