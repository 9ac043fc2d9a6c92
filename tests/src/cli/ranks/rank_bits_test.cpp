// Trainings on several ranks, started by mpirun, give the weights of a single process.

#include <gtest/gtest.h>
#include <sys/types.h>

#include <csignal>
#include <fstream>
#include <initializer_list>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>

#include "tests/src/cli/program.h"
#include "tests/src/cli/ranks/run_ranks.h"
#include "tests/temporary_folder.h"

namespace spillway::test {
namespace {

using nlohmann::json;

// Compares these numbers of ranks with one process without a launcher.
void expect_same_weights(const Arguments& flags, std::initializer_list<std::size_t> numbers) {
  const Arguments training =
      training_of_ranks({"--micro-batches 4 --steps 3 --eval-every 0 --json -", flags});
  const std::string alone = weights_of(run_spillway({training, "--ranks 1"}));
  ASSERT_EQ(alone.size(), 64U);
  for (const std::size_t ranks : numbers) {
    EXPECT_EQ(weights_of(run_ranks(ranks, {training, "--ranks auto"})), alone) << ranks << " ranks";
  }
}

TEST(Ranks, HaveTheSameWeightsInManagedMemory) {
  expect_same_weights("--memory managed --budget min+20%", {1, 3});
}

TEST(Ranks, HaveTheSameWeightsWithCopies) {
  expect_same_weights("--memory copy --budget min+20% --bucket 64KiB", {2, 4});
}

TEST(Ranks, HaveTheSameWeightsWithAdamW) {
  expect_same_weights("--optimizer adamw --lr 0.001 --weight-decay 0.01 --budget min+20%", {2});
}

// Frames that arrive late, out of order or never.
TEST(Ranks, HaveTheSameWeightsOnTwoNodesWithABadLink) {
  const Arguments training =
      training_of_ranks("--micro-batches 4 --steps 1 --eval-every 0 --budget min+20% --json -");
  const Outcome outcome = run_nodes("late=1", {training, "--ranks auto --zero 1"});
  if (outcome.exit_code == kNoNodes) GTEST_SKIP() << "no network namespaces here, or no python3";
  EXPECT_EQ(weights_of(outcome), weights_of(run_spillway(training)));
}

// Two ranks train two micro-batches each. Four ranks refuse the plan.
TEST(Ranks, HaveTheSameWeightsByThePlanOfAFile) {
  const TemporaryFolder folder;
  const Arguments step = "--net lenet --device host --threads 1 --conv-algorithm direct --batch";
  succeed({"plan", step,
           "6 --micro-batch-size 3 --ranks 2 --interconnect 1GB/s --budget min+50% --out",
           folder.file("plan.json")});
  succeed({"profile", step, "3 --out", folder.file("profile.json")});
  expect_same_weights({"--profile", folder.file("profile.json")}, {2});
  const Arguments training =
      training_of_ranks("--steps 3 --eval-every 0 --json - --micro-batches 4 --ranks auto --plan");
  const Outcome two = run_ranks(2, {training, folder.file("plan.json")});
  EXPECT_EQ(weights_of(two), weights_of(run_spillway(training_of_ranks(
                                 "--micro-batches 4 --steps 3 --eval-every 0 --json -"))))
      << two.errors;
  const Outcome four = run_ranks(4, {training, folder.file("plan.json")});
  EXPECT_NE(four.errors.find("belongs to another step"), std::string::npos) << four.errors;
}

TEST(Ranks, ChangeTheWeightsOnlyByTheirMicroBatches) {
  const Arguments training = training_of_ranks("--steps 2 --eval-every 0 --json -");
  EXPECT_NE(weights_of(run_spillway({training, "--micro-batches 4"})),
            weights_of(run_spillway({training, "--micro-batches 2"})));
}

TEST(Ranks, AreInTheSummary) {
  const Outcome outcome =
      run_ranks(2, training_of_ranks("--steps 3 --eval-every 0 --bucket 64KiB --ranks 2 --json -"));
  const json summary = summary_of(outcome);
  EXPECT_EQ(json_lines(outcome).size(), 4U);  // of one rank
  ASSERT_TRUE(summary.contains("ranks")) << summary;
  const json& ranks = summary.at("ranks");
  EXPECT_EQ(ranks.value("ranks", 0), 2);
  EXPECT_EQ(summary.value("micro_batches", 0),
            4);  // the largest power of two that divides the batch
  EXPECT_GT(ranks.value("buckets", 0), 1);
  EXPECT_EQ(ranks.value("reduction", ""), "tree");
  EXPECT_EQ(ranks.value("library", ""), "mpi");
  EXPECT_GT(ranks.value("exchange_seconds", 0.0), 0);
  EXPECT_LE(ranks.value("hidden_exchange_seconds", 1e9), ranks.value("exchange_seconds", 0.0));
}

TEST(Ranks, ReduceAsFastAsTheLibraryLikes) {
  const json summary = summary_of(run_ranks(
      2, training_of_ranks("--steps 2 --eval-every 0 --ranks 2 --reduction fastest --json -")));
  EXPECT_EQ(summary.value("ranks", json::object()).value("reduction", ""), "fastest");
}

// LeNet's largest layer has 48,000 weights and 120 biases. Momentum has as many numbers, and each
// of two ranks keeps half.
TEST(Ranks, DivideTheOptimizerWithTheSameBits) {
  const char* const steps = "--steps 2 --eval-every 0 --ranks 2 --json -";
  const json whole = summary_of(run_ranks(2, training_of_ranks({steps, "--zero 0"})));
  const json divided = summary_of(run_ranks(2, training_of_ranks({steps, "--zero 1"})));
  EXPECT_EQ(divided.at("weights_sha256"), whole.at("weights_sha256"));
  const json& ranks = divided.at("ranks");
  EXPECT_EQ(ranks.at("zero"), 1);
  EXPECT_EQ(ranks.at("optimizer_bytes"), whole.at("ranks").at("optimizer_bytes"));
  const auto kept = ranks.at("optimizer_bytes_of_rank").get<double>();
  const auto all = ranks.at("optimizer_bytes").get<double>();
  EXPECT_LE(kept, all - 0.5 * 48'000 * sizeof(float));
  EXPECT_GE(kept, 0.5 * all);
  EXPECT_EQ(whole.at("ranks").at("optimizer_bytes_of_rank"), all);
}

// Only one rank prints.
TEST(Ranks, SpeakOnce) {
  const TemporaryFolder folder;
  const Outcome outcome =
      run_ranks(3, training_of_ranks({"--steps 4 --eval-every 2 --ranks auto --checkpoint",
                                      folder.file("run"), "--confusion", folder.file("table")}));
  ASSERT_EQ(outcome.exit_code, 0) << outcome.errors;
  EXPECT_EQ(outcome.output, "");
  std::istringstream lines{outcome.errors};
  for (std::string line, before; std::getline(lines, line); before = line) {
    EXPECT_NE(line, before);
  }
  for (const char* const part :
       {"lenet (", " on 3 ranks; gradients in ", "plan of joint", "weights ", "near peak "}) {
    const std::size_t first = outcome.errors.find(part);
    ASSERT_NE(first, std::string::npos) << part << " in: " << outcome.errors;
    EXPECT_EQ(outcome.errors.find(part, first + 1), std::string::npos) << outcome.errors;
  }
}

// With mpirun's default, each rank has one processor and still a thread for hints.
TEST(Ranks, HaveNoWarningsWhenTiedToOneProcessorEach) {
  const Outcome outcome =
      run_ranks(2, training_of_ranks("--steps 2 --eval-every 0 --ranks 2 --budget min --json -"),
                "--bind-to core:overload-allowed");
  const json summary = summary_of(outcome);
  EXPECT_EQ(outcome.errors.find("TBB"), std::string::npos) << outcome.errors;
  EXPECT_EQ(summary.value("faults", -1), 0);
}

// The interconnect is printed as flags of `spillway plan`.
TEST(Ranks, MeasureWhatIsBetweenThem) {
  const TemporaryFolder folder;
  const std::string path = folder.file("profile.json");
  const Outcome outcome = run_ranks(
      2, {"profile --net lenet --batch 8 --threads 1 --ranks auto --device host --out", path});
  ASSERT_EQ(outcome.exit_code, 0) << outcome.errors;
  const std::string words = "between these ranks: plan --ranks 2 --interconnect ";
  const std::size_t at = outcome.errors.find(words);
  ASSERT_NE(at, std::string::npos) << outcome.errors;
  const std::size_t begin = outcome.errors.find("--ranks", at);
  const std::string flags = outcome.errors.substr(begin, outcome.errors.find('\n', at) - begin);
  const json plan = json_of({"plan --net lenet --batch 8 --machine host --json -", flags.c_str()});
  EXPECT_EQ(plan.at("ranks").at("count"), 2);
  EXPECT_NE(flags.find("--compute-speed-while-exchanging "), std::string::npos);
  EXPECT_GT(plan.at("ranks").at("compute_speed_while_exchanging"), 0);
  EXPECT_LE(plan.at("ranks").at("compute_speed_while_exchanging"), 1);
  succeed({"plan --net lenet --batch 8 --threads 1 --profile", path});
}

class ResumedRanks : public ::testing::Test {
 protected:
  [[nodiscard]] Arguments training(const Arguments& more) const {
    return training_of_ranks({"--eval-every 0 --json - --checkpoint", folder_.file("run"), more});
  }
  // Trains two steps on two ranks and leaves a checkpoint.
  void begin() const { ASSERT_EQ(weights_of(run_ranks(2, begun_)).size(), 64U); }
  void expect_refusal(const Outcome& outcome, const std::string& sentence) const {
    EXPECT_EQ(outcome.exit_code, kFailure);
    EXPECT_EQ(outcome.output, "");
    const std::size_t at = outcome.errors.find(sentence);
    ASSERT_NE(at, std::string::npos) << outcome.errors;
    EXPECT_EQ(outcome.errors.find(sentence, at + 1), std::string::npos) << outcome.errors;
  }

  TemporaryFolder folder_;
  Arguments begun_ = training("--micro-batches 4 --steps 2 --ranks auto");
};

TEST_F(ResumedRanks, GoOnAsAnyNumberOfRanks) {
  const std::string whole = weights_of(
      run_spillway(training_of_ranks("--eval-every 0 --json - --micro-batches 4 --steps 5")));
  begin();
  EXPECT_EQ(weights_of(run_ranks(3, training("--resume --steps 3 --ranks auto"))).size(), 64U);
  EXPECT_EQ(weights_of(run_ranks(1, training("--resume --steps 4 --ranks auto"))).size(), 64U);
  EXPECT_EQ(weights_of(run_ranks(4, training("--resume --steps 5 --ranks auto"))), whole);
}

// Resumes with one process without a launcher.
TEST_F(ResumedRanks, GoOnWithoutThem) {
  const std::string whole = weights_of(
      run_spillway(training_of_ranks("--eval-every 0 --json - --micro-batches 4 --steps 3")));
  begin();
  EXPECT_EQ(weights_of(run_spillway(training("--resume --steps 3"))), whole);
}

// The same command works with and without a checkpoint.
TEST_F(ResumedRanks, AreRestartedByTheSameCommand) {
  const std::string whole = weights_of(
      run_spillway(training_of_ranks("--eval-every 0 --json - --micro-batches 4 --steps 4")));
  const Arguments again =
      training("--resume auto --micro-batches 4 --checkpoint-every 1 --ranks auto");
  EXPECT_EQ(weights_of(run_ranks(2, {again, "--steps 2"})).size(), 64U);
  EXPECT_EQ(weights_of(run_ranks(2, {again, "--steps 4"})), whole);
  EXPECT_EQ(summary_of(run_ranks(2, {again, "--steps 4"})).value("steps_run", -1), 0);
}

TEST_F(ResumedRanks, KeepTheirMicroBatches) {
  begin();
  const char* const sentence =
      " is of a training with --micro-batch-size 3, which cannot change; leave out --micro-batches";
  expect_refusal(run_ranks(2, training("--resume --steps 3 --ranks auto --micro-batches 2")),
                 sentence);
  expect_refusal(run_spillway(training("--resume --steps 3 --micro-batches 6")), sentence);
}

TEST_F(ResumedRanks, AreNoneWhereBatchesWereWhole) {
  ASSERT_EQ(weights_of(run_spillway(training("--steps 1"))).size(), 64U);
  expect_refusal(run_ranks(2, training("--resume --steps 3 --ranks auto")),
                 " ended: a batch leaves some of 2 ranks without work; ");
  expect_refusal(run_spillway(training("--resume --steps 3 --micro-batches 4")),
                 " is of a training with whole batches, which cannot change; leave out ");
}

// Returns the launcher's first process.
pid_t rank_of(const Program& launcher) {
  const std::string process = std::to_string(launcher.process());
  std::ifstream children{"/proc/" + process + "/task/" + process + "/children"};
  pid_t first = -1;
  children >> first;
  return first;
}

TEST_F(ResumedRanks, EndTogetherAfterASignalToOne) {
  Program launcher{training("--micro-batches 4 --steps 1000000 --ranks auto"),
                   {},
                   Program::Errors::kPipe,
                   0,
                   mpirun(2)};
  launcher.wait_for_lines(2);
  const pid_t rank = rank_of(launcher);
  ASSERT_GT(rank, 0);
  ASSERT_EQ(kill(rank, SIGTERM), 0);
  const Outcome outcome = launcher.finish();

  EXPECT_NE(outcome.exit_code, 0);
  const std::string sentence = "spillway: interrupted; the checkpoint is of step ";
  const std::size_t at = outcome.errors.find(sentence);
  ASSERT_NE(at, std::string::npos) << outcome.errors;
  EXPECT_EQ(outcome.errors.find(sentence, at + 1), std::string::npos) << outcome.errors;
  const std::size_t step = std::stoul(outcome.errors.substr(at + sentence.size()));
  const std::string end = std::to_string(step + 1);
  const Arguments whole{training_of_ranks("--eval-every 0 --json - --micro-batches 4 --steps"),
                        end};
  EXPECT_EQ(weights_of(run_ranks(2, {training("--resume --ranks auto --steps"), end})),
            weights_of(run_spillway(whole)));
}

TEST_F(ResumedRanks, HaveNothingLeftTogether) {
  begin();
  const Outcome outcome = run_ranks(2, training("--resume --steps 2 --ranks auto"));
  EXPECT_EQ(summary_of(outcome).value("steps_run", -1), 0);
  EXPECT_EQ(json_lines(outcome).size(), 1U);
}

}  // namespace
}  // namespace spillway::test
