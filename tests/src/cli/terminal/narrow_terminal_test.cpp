// The progress line on terminals of any width.

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <cstddef>
#include <string>

#include "tests/src/cli/program.h"

namespace spillway::test {
namespace {

struct Lines {
  std::size_t count = 0;
  std::size_t longest = 0;
};

// Lines that are rewritten: from a carriage return to the code that clears the rest.
Lines progress_lines(const std::string& errors) {
  Lines lines;
  for (std::size_t end = errors.find("\x1b[K"); end != std::string::npos;
       end = errors.find("\x1b[K", end + 1)) {
    const std::size_t begin = errors.rfind('\r', end) + 1;
    lines.longest = std::max(lines.longest, end - begin);
    ++lines.count;
  }
  return lines;
}

TEST(NarrowTerminal, IsNeverTooNarrowForTheProgressLine) {
  for (const unsigned short columns : std::to_array<unsigned short>({10, 20, 40, 80, 200})) {
    Program program{"train --net lenet --batch 8 --steps 30 --eval-every 0 --threads 1",
                    {},
                    Program::Errors::kTerminal,
                    columns};
    const Outcome outcome = program.finish();
    EXPECT_EQ(outcome.exit_code, 0) << outcome.errors;
    const Lines lines = progress_lines(outcome.errors);
    EXPECT_GE(lines.count, 1U) << outcome.errors;
    EXPECT_LT(lines.longest, columns) << outcome.errors;
  }
}

// Steps come faster than progress is shown, in a terminal and in a file.
TEST(Progress, ShowsTheLastStepAndWhatWasLearned) {
  for (const auto errors : {Program::Errors::kTerminal, Program::Errors::kPipe}) {
    Program program{
        "train --net lenet --batch 8 --steps 40 --eval-every 40 --threads 1", {}, errors};
    const std::string said = program.finish().errors;
    const std::size_t last = said.rfind("step 40/40  loss ");
    ASSERT_NE(last, std::string::npos) << said;
    EXPECT_LT(last, said.find("step 40, epoch 1: test loss "))
        << "an evaluation follows its step: " << said;
    expect_parts(said, {"\nloss ", " -> ", " %)"});
  }
}

TEST(Progress, ShowsTheLastStepOfAnInterruptedTraining) {
  Program program{"train --net lenet --batch 8 --steps 100000 --threads 1 --json -"};
  program.wait_for_lines(3);
  program.signal(SIGTERM);
  const Outcome outcome = program.finish();
  const std::size_t steps = json_lines(outcome).size();
  expect_parts(outcome.errors, {"step " + std::to_string(steps) + "/100000  loss "});
}

// An evaluation's result is never cut.
TEST(NarrowTerminal, CutsNoEvaluation) {
  Program program{"train --net lenet --batch 8 --steps 2 --eval-every 2 --threads 1",
                  {},
                  Program::Errors::kTerminal,
                  20};
  expect_parts(program.finish().errors, {"epoch 1: test loss ", " %, top-5 "});
}

}  // namespace
}  // namespace spillway::test
