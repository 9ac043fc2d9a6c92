// Trainings that are stopped or killed, and resumed.
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <cstddef>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "tests/src/cli/program.h"
#include "tests/temporary_folder.h"

namespace spillway {
namespace {

namespace fs = std::filesystem;

using nlohmann::json;
using test::Arguments;
using test::Outcome;
using test::Program;
using test::run_spillway;
using test::TemporaryFolder;

class Interrupted : public testing::Test {
 protected:
  Interrupted() { fs::create_directory(far()); }

  [[nodiscard]] fs::path far() const { return folder_.path() / "far"; }
  [[nodiscard]] std::string checkpoint() const { return folder_.file("checkpoint"); }

  // Many long steps, so that a signal arrives during one.
  [[nodiscard]] Arguments endless(const Arguments& more) const {
    return {"train --net resnet18 --batch 4 --image-size 64 --epochs 1000000 --json -", more};
  }
  // The same with steps of a few milliseconds.
  [[nodiscard]] static Arguments quick(const Arguments& more) {
    return {"train --net lenet --batch 64 --epochs 1000000 --json -", more};
  }
  // Uses this memory mode, with far memory in a file.
  [[nodiscard]] Arguments in_memory(const std::string& memory) const {
    if (memory == "resident") return "--memory resident";
    return {"--budget min+20% --planner capacity --memory", memory, "--far",
            "file:" + far().string()};
  }

  TemporaryFolder folder_;
};

TEST_F(Interrupted, ByControlCEndsTheStepAndLeavesNothing) {
  const std::vector<std::pair<int, std::string>> cases{
      {SIGINT, "managed"}, {SIGTERM, "copy"}, {SIGHUP, "resident"}};
  for (const auto& [signal, memory] : cases) {
    Program program{endless(in_memory(memory))};
    program.wait_for_lines(1);
    EXPECT_TRUE(fs::is_empty(far())) << "while it runs";
    program.signal(signal);
    const Outcome outcome = program.finish();

    EXPECT_EQ(outcome.exit_code, 128 + signal) << outcome.errors;
    EXPECT_TRUE(fs::is_empty(far()));
    const std::vector<json> lines = json_lines(outcome);
    for (const json& line : lines) EXPECT_TRUE(line.contains("loss")) << line;
    EXPECT_TRUE(outcome.errors.ends_with("\nspillway: interrupted; step " +
                                         std::to_string(lines.back().value("step", 0)) +
                                         " was the last; with --checkpoint it would have been "
                                         "saved\n"))
        << outcome.errors;
  }
}

TEST_F(Interrupted, WhileMeasuringStopsToo) {
  // Some hundred tasks, each measured for milliseconds; the first is reported immediately.
  Program program{
      {"profile --net resnet18 --batch 64 --image-size 64 --out", folder_.file("profile")}};
  program.wait_for_error("measuring tasks");
  program.signal(SIGINT);
  const Outcome outcome = program.finish();

  EXPECT_EQ(outcome.exit_code, 130) << outcome.errors;
  EXPECT_NE(outcome.errors.find("\nspillway: interrupted"), std::string::npos) << outcome.errors;
  EXPECT_FALSE(fs::exists(folder_.file("profile")));
}

TEST_F(Interrupted, BeforeTheFirstStepSaysThatNothingWasTrained) {
  Program program{"train --net resnet18 --image-size 64 --batch 32 --steps 2 --budget 50%"};
  program.wait_for_error("measuring tasks");
  program.signal(SIGINT);
  const Outcome outcome = program.finish();
  EXPECT_EQ(outcome.exit_code, 128 + SIGINT);
  EXPECT_TRUE(outcome.errors.ends_with("\nspillway: interrupted; no step was trained\n"))
      << outcome.errors;
}

TEST_F(Interrupted, WithAFolderEndsTheStepAndSavesIt) {
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) {
    const std::string folder = checkpoint() + std::to_string(signal);
    Program program{quick({"--checkpoint", folder})};
    program.wait_for_lines(1);
    program.signal(signal);
    const Outcome outcome = program.finish();

    EXPECT_EQ(outcome.exit_code, 128 + signal) << outcome.errors;
    const json last = json_lines(outcome).back();
    json saved;
    std::ifstream{folder + "/checkpoint.json"} >> saved;
    EXPECT_EQ(saved.value("step", 0), last.value("step", -1));
    EXPECT_TRUE(outcome.errors.ends_with("\nspillway: interrupted; the checkpoint is of step " +
                                         std::to_string(saved.value("step", 0)) +
                                         ", and --resume goes on from there\n"))
        << outcome.errors;
    EXPECT_EQ(run_spillway({"checkpoint verify", folder}).exit_code, 0);
  }
}

// The second signal stops the program before the step ends.
TEST_F(Interrupted, TwiceStopsAtOnce) {
  Program program{endless({in_memory("managed"), "--checkpoint", checkpoint()})};
  program.wait_for_lines(1);
  program.signal(SIGTERM);
  program.signal(SIGINT);

  EXPECT_GE(program.finish().exit_code, 128);
  EXPECT_FALSE(fs::exists(checkpoint() + "/checkpoint.json"));
}

// nohup starts programs with SIGHUP ignored.
TEST_F(Interrupted, NotByASignalThatIsIgnored) {
  for (const int ignored : {SIGHUP, SIGTERM}) {
    const auto before = std::signal(ignored, SIG_IGN);
    Program program{quick({})};
    std::signal(ignored, before);
    program.wait_for_lines(1);
    program.signal(ignored);
    program.wait_for_lines(3);
    program.signal(SIGINT);

    EXPECT_EQ(program.finish().exit_code, 128 + SIGINT);
  }
}

// The limit applies to the checkpoint and the far file.
TEST_F(Interrupted, NotByAFileThatMayNotGrow) {
  rlimit before{};
  getrlimit(RLIMIT_FSIZE, &before);
  const rlimit small{.rlim_cur = 100'000, .rlim_max = before.rlim_max};
  setrlimit(RLIMIT_FSIZE, &small);
  Program program{{"train --net lenet --batch 8 --steps 2 --checkpoint", checkpoint()}};
  setrlimit(RLIMIT_FSIZE, &before);
  const Outcome outcome = program.finish();

  EXPECT_EQ(outcome.exit_code, 1) << outcome.errors;
  EXPECT_NE(outcome.errors.find("spillway: cannot write " + checkpoint() +
                                "/step-2.safetensors: File too large\n"),
            std::string::npos)
      << outcome.errors;
}

TEST_F(Interrupted, ByKillLeavesNoFarFile) {
  Program program{endless(in_memory("managed"))};
  program.wait_for_lines(1);
  program.signal(SIGKILL);

  EXPECT_EQ(program.finish().exit_code, 128 + SIGKILL);
  EXPECT_TRUE(fs::is_empty(far()));
}

class Killed : public Interrupted {
 protected:
  // Flags that are the same in all runs of one training.
  [[nodiscard]] static Arguments lenet(const Arguments& more) {
    return {"train --net lenet --batch 8 --lr 0.02 --seed 5 --json -", more};
  }
  [[nodiscard]] Arguments saved(const Arguments& more) const {
    return {lenet({"--checkpoint", checkpoint(), "--checkpoint-every 3"}), more};
  }

  // Kills the training after `lines` steps, when the previous checkpoint has been written.
  void train_until_killed(const Arguments& more, std::size_t lines) const {
    Program program{saved({"--epochs 1000000 --far", "file:" + far().string(), more})};
    program.wait_for_lines(lines);
    program.signal(SIGKILL);
    ASSERT_EQ(program.finish().exit_code, 128 + SIGKILL);
    ASSERT_TRUE(fs::is_empty(far()));
    ASSERT_TRUE(fs::exists(checkpoint() + "/checkpoint.json"));
  }
  [[nodiscard]] json manifest() const {
    json saved;
    std::ifstream{checkpoint() + "/checkpoint.json"} >> saved;
    return saved;
  }
  // Returns the total number of steps: some more than before the kill.
  [[nodiscard]] std::string steps() const {
    return std::to_string(manifest().value("step", 0) + 5);
  }
  // Copies the plan, as the checkpoint is removed when the training resumes.
  [[nodiscard]] std::string plan() const {
    const auto name = manifest().at("plans").back().at("file").get<std::string>();
    fs::copy_file(checkpoint() + '/' + name, folder_.file("plan.json"));
    return folder_.file("plan.json");
  }

  // `uninterrupted` are the flags of a training without a kill, `more` those of the resumed one.
  void expect_same_end(const Arguments& uninterrupted, const Arguments& more) const {
    const Arguments all = {"--steps", steps()};
    const json whole = summary_of(run_spillway(lenet({uninterrupted, all})));
    const json resumed = summary_of(run_spillway(saved({"--resume", all, more})));
    EXPECT_EQ(resumed.value("steps", 0), whole.value("steps", 1));
    EXPECT_EQ(resumed.value("steps_run", 0), 5);
    EXPECT_EQ(resumed.value("weights_sha256", "none"), whole.value("weights_sha256", "nothing"));
    EXPECT_EQ(resumed.value("last_loss", 0.0), whole.value("last_loss", 1.0));
  }
};

TEST_F(Killed, TrainingGoesOnToTheSameWeights) {
  const Arguments direct = "--conv-algorithm direct --budget min+50%";
  train_until_killed(direct, 7);

  expect_same_end(direct, direct);
}

// The second program measures other times, but must use the algorithms of the first.
TEST_F(Killed, TrainingKeepsItsPlan) {
  const Arguments managed = "--budget min+50%";
  train_until_killed(managed, 7);

  expect_same_end({"--plan", plan()}, managed);
}

TEST_F(Killed, TrainingMayGoOnElsewhere) {
  const Arguments direct = "--conv-algorithm direct";
  train_until_killed({direct, "--budget min --memory copy"}, 7);

  expect_same_end(direct, {direct, "--memory resident"});
}

TEST_F(Killed, TrainingKeepsItsLearningRate) {
  const Arguments net = "train --net lenet --batch 8 --json -";
  const Arguments direct = {net, "--conv-algorithm direct"};
  const json whole = summary_of(run_spillway({direct, "--lr 0.03 --steps 6"}));
  const Arguments kept = {direct, "--checkpoint", checkpoint()};
  static_cast<void>(summary_of(run_spillway({kept, "--lr 0.03 --steps 3"})));

  const json resumed = summary_of(run_spillway({kept, "--resume --steps 6"}));

  EXPECT_EQ(resumed.value("weights_sha256", "none"), whole.value("weights_sha256", "nothing"));
}

}  // namespace
}  // namespace spillway

namespace spillway::test {
namespace {

// The progress line on terminals of any width.

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
