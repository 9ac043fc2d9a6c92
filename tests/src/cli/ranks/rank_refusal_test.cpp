// Errors of ranks: one sentence, printed once, that ends all ranks.

#include <gtest/gtest.h>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

#include "tests/src/cli/program.h"
#include "tests/src/cli/ranks/run_ranks.h"
#include "tests/src/io/images/png_file.h"
#include "tests/src/ranks/mpi/no_launcher.h"
#include "tests/temporary_folder.h"

namespace spillway::test {
namespace {

// Removes variables of a batch script, which would announce ranks to each training.
class RefusedRanks : public ::testing::Test {
 protected:
  static void SetUpTestSuite() { forget_launcher(); }
};

// Expects the sentence once; the launcher may add messages. Standard output must be empty.
void expect_once(const Outcome& outcome, int code, const std::string& sentence) {
  EXPECT_EQ(outcome.exit_code, code) << outcome.errors;
  EXPECT_EQ(outcome.output, "");
  const std::size_t at = outcome.errors.find(sentence);
  ASSERT_NE(at, std::string::npos) << "no '" << sentence << "' in: " << outcome.errors;
  EXPECT_EQ(outcome.errors.find(sentence, at + 1), std::string::npos) << outcome.errors;
  EXPECT_EQ(outcome.errors.find("bug in spillway"), std::string::npos) << outcome.errors;
}

Arguments short_training(const Arguments& more) {
  return training_of_ranks({"--steps 1 --eval-every 0", more});
}

struct Refusal {
  Arguments flags;
  std::string sentence;
};

// Expects errors of two ranks with equal flags.
void expect_all(const std::vector<Refusal>& refusals) {
  for (const auto& [flags, sentence] : refusals) {
    const Arguments arguments = short_training({"--ranks auto", flags});
    expect_once(run_ranks(2, arguments), kFailure, sentence);
  }
}

TEST_F(RefusedRanks, AreOfAnotherNumberThanStarted) {
  expect_once(run_ranks(2, short_training("--ranks 3")), kFailure,
              "spillway: --ranks 3, but the launcher started 2; give --ranks auto, or start as "
              "many\n");
}

TEST_F(RefusedRanks, AreWithoutALauncher) {
  expect_refused(kFailure, short_training("--ranks 2"),
                 {"start them with mpirun -n 2 spillway train ... --ranks auto"});
}

// torchrun and Slurm start processes without MPI.
TEST_F(RefusedRanks, AreAnnouncedByAnotherLauncherThanMpis) {
  const Arguments training = short_training("--ranks auto");
  expect_refused(kFailure, training,
                 {"WORLD_SIZE announces 4 processes", "each would train alone",
                  "mpirun -n 4 spillway train ... --ranks auto", "--ranks 1"},
                 "WORLD_SIZE=4 RANK=1");
  expect_refused(kFailure, training,
                 {"SLURM_NTASKS announces 2 processes",
                  "srun --mpi=pmix -n 2 spillway train ... --ranks auto"},
                 "SLURM_NTASKS=2 SLURM_PROCID=0");
  expect_refused(kFailure, training, {"the launcher started 3 processes, but MPI sees this one"},
                 "PMI_SIZE=3 PMI_RANK=0");
}

TEST_F(RefusedRanks, TrainAloneWhereTheySaySo) {
  const char* const note = "note: --ranks auto trains with this process alone";
  expect_parts(succeed(short_training("--ranks auto")).errors, {note});
  const Outcome one = run_spillway(short_training("--ranks 1"), "WORLD_SIZE=4 RANK=1");
  EXPECT_EQ(one.exit_code, 0) << one.errors;
  EXPECT_EQ(one.errors.find(note), std::string::npos) << one.errors;
  const Outcome launched = run_ranks(1, short_training("--ranks auto"));
  EXPECT_EQ(launched.errors.find(note), std::string::npos) << launched.errors;
}

TEST_F(RefusedRanks, AreStartedButNotAskedFor) {
  expect_once(run_ranks(2, short_training({})), kFailure,
              "spillway: this process was started as one of several ranks, each of which would "
              "train for itself; give --ranks auto\n");
}

TEST_F(RefusedRanks, DifferInTheirCommandLines) {
  const Outcome outcome =
      run_ranks(1, {short_training("--ranks auto --lr 0.1"), ": -n 1",
                    std::string{SPILLWAY_PROGRAM}, short_training("--ranks auto --lr 0.2")});
  expect_once(outcome, kFailure, "the ranks differ in command line: rank 0 on ");
  expect_parts(outcome.errors, {"lr=0.1", "lr=0.2", ", rank 1 on "});
}

// Runs two ranks, each in a folder of its own, with these arguments.
Outcome run_in(const TemporaryFolder& first, const TemporaryFolder& second,
               const Arguments& arguments) {
  return run_ranks(
      1,
      {arguments, ": -n 1 -wdir", second.path().string(), std::string{SPILLWAY_PROGRAM}, arguments},
      {"--bind-to none -wdir", first.path().string()});
}

void write(const TemporaryFolder& folder, const std::string& name, const std::string& content) {
  std::ofstream{folder.file(name), std::ios::binary} << content;
}

// The texts differ in one byte, outside the first, last and middle windows.
TEST_F(RefusedRanks, LearnFromOtherTexts) {
  const TemporaryFolder first;
  const TemporaryFolder second;
  std::string text;
  for (int i = 0; i < 4000; ++i) text += static_cast<char>('a' + i * i % 26);
  write(first, "book.txt", text);
  const char first_letter = std::exchange(text[1000], 'A');
  write(second, "book.txt", text);
  const Arguments training =
      "train --net gpt:1,1,8,16 --vocabulary 256 --batch 4 --threads 1 --device host --steps 1 "
      "--eval-every 0 --ranks auto --data text:book.txt";
  const Outcome outcome = run_in(first, second, training);
  expect_once(outcome, kFailure, "the ranks differ in data: rank 0 on ");
  expect_parts(outcome.errors, {", rank 1 on ", "content ", "; copy the same data to"});
  text[1000] = first_letter;
  write(second, "book.txt", text);
  EXPECT_EQ(run_in(first, second, training).exit_code, 0);
}

// Writes two classes of twelve grey images to `folder`; one image has another grey.
void write_images(const TemporaryFolder& folder, std::uint8_t grey_of_one) {
  constexpr std::uint32_t kSide = 8;
  for (const std::string name : {"cat", "dog"}) {
    std::filesystem::create_directories(folder.path() / "train" / name);
    for (int i = 0; i < 12; ++i) {
      const bool is_one = name == "cat" && i == 4;
      std::vector<std::uint8_t> rows(kSide * (kSide + 1),
                                     is_one ? grey_of_one : static_cast<std::uint8_t>(10 * i));
      for (std::size_t row = 0; row < kSide; ++row) rows[row * (kSide + 1)] = 0;  // filter byte
      folder.write("train/" + name + "/" + std::to_string(i) + ".png",
                   png_file({.width = kSide, .height = kSide, .color = 0}, rows));
    }
  }
}

// Both folders have the same file names and sizes.
TEST_F(RefusedRanks, LearnFromOtherImages) {
  const TemporaryFolder first;
  const TemporaryFolder second;
  write_images(first, 200);
  write_images(second, 201);
  const char* const file = "train/cat/4.png";
  ASSERT_EQ(std::filesystem::file_size(first.file(file)),
            std::filesystem::file_size(second.file(file)));
  const Arguments training = short_training("--ranks auto --data images:. --augment none");
  const Outcome outcome = run_in(first, second, training);
  expect_once(outcome, kFailure, "the ranks differ in data: rank 0 on ");
  expect_parts(outcome.errors, {", rank 1 on ", "samples ", "; copy the same data to"});
  write_images(second, 200);
  EXPECT_EQ(run_in(first, second, training).exit_code, 0);
}

// oneDNN chooses layouts by the processor's instructions.
TEST_F(RefusedRanks, UseOtherInstructions) {
  const auto backend_of = [](const Arguments& environment) {
    const Arguments training = short_training("--json -");
    return summary_of(run_spillway(training, environment)).value("backend", "none");
  };
  if (backend_of({}) == backend_of("ONEDNN_MAX_CPU_ISA=SSE41")) {
    GTEST_SKIP() << "on this processor, oneDNN uses SSE4.1, or none of x86's instructions";
  }
  const Outcome outcome =
      run_ranks(1, {short_training("--ranks auto"), ": -n 1 -x ONEDNN_MAX_CPU_ISA=SSE41",
                    std::string{SPILLWAY_PROGRAM}, short_training("--ranks auto")});
  expect_once(outcome, kFailure, "the ranks differ in kernels: rank 0 on ");
  expect_parts(outcome.errors, {"sse41", "ONEDNN_MAX_CPU_ISA=AVX2"});
}

// Without a signal, no rank may exit as if there were one.
TEST_F(RefusedRanks, EndAlikeWhereTheFirstOnesDiskIsFull) {
  const TemporaryFolder folder;
  const Arguments training = training_of_ranks(
      {"--steps 9 --eval-every 0 --ranks auto --json /dev/full --checkpoint", folder.file("run")});
  const Outcome outcome = run_ranks(2, training);
  expect_once(outcome, kFailure, "cannot write /dev/full: ");
  expect_parts(outcome.errors, {"; the checkpoint is of step 1, and --resume goes on from there"});
  EXPECT_EQ(outcome.errors.find("interrupted"), std::string::npos) << outcome.errors;
}

// Refused before the interconnect is measured.
TEST_F(RefusedRanks, MeasureDifferentSteps) {
  const TemporaryFolder folder;
  const Arguments profile = {"profile --net lenet --threads 1 --device host --ranks auto --out",
                             folder.file("profile.json"), "--batch"};
  const Outcome outcome =
      run_ranks(1, {profile, "8", ": -n 1", std::string{SPILLWAY_PROGRAM}, profile, "12"});
  expect_once(outcome, kFailure, "the ranks differ in command line: rank 0 on ");
  expect_parts(outcome.errors, {"batch=8", "batch=12"});
}

TEST_F(RefusedRanks, HaveMicroBatchesThatFitNeitherBatchNorRanks) {
  expect_all(
      {{"--micro-batches 5", " ended: a batch of 12 cannot be cut into 5 equal micro-batches"},
       {"--micro-batches auto", " ended: --micro-batches auto follows the budget of one "}});
  expect_once(run_ranks(3, short_training("--ranks auto --micro-batches 2")), kFailure,
              " ended: a batch in 2 micro-batches leaves some of 3 ranks without work; start fewer "
              "ranks, or give more --micro-batches, which --resume takes from the checkpoint\n");
}

TEST_F(RefusedRanks, UpdateNoSlicesFar) {
  expect_all(
      {{"--update far --zero 1",
        " ended: with --zero each rank updates a slice of the weights, which ranks gather in "
        "near memory; leave out --update far, or --zero"}});
}

TEST_F(RefusedRanks, DoNotLiveOnPageFaults) {
  expect_all({{"--planner on-demand",
               " ended: page faults alone (--planner on-demand) go with one rank only; leave out "
               "--ranks\n"}});
}

TEST_F(RefusedRanks, TrainOnAGpuEach) {
  const Arguments training = "train --net lenet --batch 12 --threads 1 --steps 1 --eval-every 0";
  expect_once(run_ranks(2, {training, "--device cuda:1 --ranks auto"}), kFailure,
              " ended: --device cuda:1 is one GPU, and 2 ranks are on this machine; give --device "
              "cuda, for a GPU each\n");
  expect_once(run_ranks(2, {training, "--device cuda:999 --ranks auto"}), kFailure,
              " ended: --device cuda:999 is one GPU, and 2 ranks are on this machine; ");
  expect_refused(kFailure, {training, "--device cuda:999 --micro-batches 2"},
                 {"CUDA cannot be used: "});
}

TEST_F(RefusedRanks, AreNotThereForTheirFlags) {
  for (const char* const flag : {"--bucket 1MiB", "--reduction tree", "--rank-timeout 30s"}) {
    const Arguments words = flag;
    expect_refused(
        kFailure, short_training({"--micro-batches 2", words}),
        {words.front() + " is about what ranks tell each other; leave it out, or give --ranks\n"});
  }
}

TEST_F(RefusedRanks, FindTheirFolderTaken) {
  const TemporaryFolder folder;
  const Arguments training = short_training({"--checkpoint", folder.file("run")});
  succeed(training);
  expect_once(run_ranks(2, {training, "--ranks auto"}), kFailure,
              " ended: there is a checkpoint of lenet ");
}

// Each rank finds the mistake before the ranks have joined.
TEST_F(RefusedRanks, HaveBadFlags) {
  expect_once(run_ranks(2, short_training("--ranks nine")), kBadUsage,
              "--ranks: 'nine' is no number of ranks: give auto, or as many as mpirun starts\n");
  expect_once(run_ranks(2, short_training("--ranks auto --rnaks 2")), kBadUsage,
              "spillway: train has no option '--rnaks'");
  expect_once(run_ranks(2, "train --net lenett --ranks auto"), kBadUsage, "no network 'lenett'");
}

// Only the last rank has bad flags: the error is still printed.
TEST_F(RefusedRanks, HaveBadFlagsOnTheLastAlone) {
  const Outcome outcome =
      run_ranks(1, {short_training("--ranks auto"), ": -n 1", std::string{SPILLWAY_PROGRAM},
                    short_training("--ranks nine")});
  expect_once(outcome, kBadUsage, "--ranks: 'nine' is no number of ranks");
}

}  // namespace
}  // namespace spillway::test
