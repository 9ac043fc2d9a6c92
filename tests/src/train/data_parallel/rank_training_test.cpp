// Trainings of several ranks, which are threads here, beside the same of other numbers of ranks.
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "nets/builder.h"
#include "src/train/trainer.h"
#include "tests/src/small_training.h"
#include "tests/src/train/data_parallel/trained_ranks.h"
#include "tests/temporary_folder.h"

namespace spillway {
namespace {

using testing::options_of;
using testing::train_on;
using testing::Trained;

nets::Network network_with_dropout() {
  nets::Builder net{"dropping", {1, 8, 8}};
  nets::NodeId x = net.convolution("conv", net.input(), {.channels = 4, .kernel = nets::square(3)});
  x = net.dropout("drop", net.relu("relu", net.batch_norm("norm", x)), {.probability = 0.5F});
  return net.build(net.linear("fc", x, {.features = 3}));
}

// Whatever the number of ranks, and on each of them; returns what it is.
Trained expect_same_on_any(const TrainerOptions& options) {
  const Trained alone = train_on(1, options).front();
  EXPECT_FALSE(alone.weights.empty());
  EXPECT_TRUE(alone.kept_budget);
  for (const std::size_t ranks : testing::kSeveralRanks) {
    for (Trained trained : train_on(ranks, options)) {
      EXPECT_GT(std::exchange(trained.exchanges, 0), 0U);
      EXPECT_EQ(trained, alone) << ranks << " ranks";
    }
  }
  return alone;
}

TEST(RankTraining, HasTheSameBitsOnAnyNumberOfRanks) {
  const Trained trained = expect_same_on_any(options_of(test::small_network()));
  EXPECT_EQ(trained.losses.size(), 3U);
  EXPECT_NE(trained.losses.front(), trained.losses.back());
}

TEST(RankTraining, DropsTheSameOnAnyNumberOfRanks) {
  static_cast<void>(expect_same_on_any(options_of(network_with_dropout())));
}

TEST(RankTraining, HasTheSameBitsWithAdamAndAnAverage) {
  TrainerOptions options = options_of(test::small_network());
  options.step.optimizer = AdamOptions{.decoupled = true};
  options.step.average_decay = 0.9;
  static_cast<void>(expect_same_on_any(options));
}

TEST(RankTraining, HasTheSameBitsWithAClippedNorm) {
  TrainerOptions options = options_of(test::small_network());
  options.step.optimizer = SgdOptions{.clip_norm = 0.01F};
  static_cast<void>(expect_same_on_any(options));
}

TEST(RankTraining, HasTheSameBitsWithCopiesAndAllResident) {
  TrainerOptions options = options_of(test::small_network());
  const Trained managed = train_on(2, options).front();
  options.memory.mode = MemoryMode::kCopy;
  EXPECT_EQ(expect_same_on_any(options).weights, managed.weights);
  options.memory = {.mode = MemoryMode::kResident};
  EXPECT_EQ(expect_same_on_any(options).weights, managed.weights);
}

// Micro-batches that no power of two divides among ranks, and more than the ranks have stacks for.
TEST(RankTraining, HasTheSameBitsWithUnevenShares) {
  TrainerOptions options = options_of(test::small_network());
  options.step.batch = 14;
  options.planning.micro_batches.count = 7;
  static_cast<void>(expect_same_on_any(options));
}

// Without batch norm the mean over the batch is all that counts; sums are only rounded otherwise.
TEST(RankTraining, LearnsAsWithoutMicroBatches) {
  TrainerOptions options = options_of(test::network_without_norm());
  const std::vector<float> losses = train_on(2, options).front().losses;
  options.ranks = {};
  std::vector<float> ordinary;
  Trainer trainer{
      test::small_context(), options, {.on_step = [&](auto, auto, const StepReport& report) {
        ordinary.push_back(report.loss);
      }}};
  trainer.run();
  ASSERT_EQ(losses.size(), ordinary.size());
  for (std::size_t i = 0; i < losses.size(); ++i) EXPECT_NEAR(losses[i], ordinary[i], 1e-5);
}

// Times are measured, and shared: plans are the same on all ranks.
TEST(RankTraining, HasTheSameBitsOnAllRanksWhereThePlannerChoosesAlgorithms) {
  TrainerOptions options = options_of(test::small_network());
  options.step.convolution = ConvolutionAlgorithm::kAuto;
  const std::vector<Trained> trained = train_on(3, options);
  EXPECT_EQ(trained[0].losses.size(), 3U);
  EXPECT_EQ(trained[0], trained[1]);
  EXPECT_EQ(trained[0], trained[2]);
}

TEST(RankTraining, FastestReductionIsTheSameOnAllRanks) {
  TrainerOptions options = options_of(test::small_network());
  options.ranks.reduction = RankReduction::kFastest;
  const std::vector<Trained> trained = train_on(3, options);
  EXPECT_EQ(trained[0], trained[1]);
  EXPECT_EQ(trained[0], trained[2]);
}

// All in one, or the small ones that are given: as measured now, the same on all ranks.
void expect_bits_with_chosen_buckets(TrainerOptions options) {
  const Trained given = train_on(2, options).front();
  ASSERT_GT(given.exchanges, 1U);
  options.ranks.chooses_buckets = true;
  for (const std::size_t ranks : {2U, 3U}) {
    const std::vector<Trained> chosen = train_on(ranks, options);
    for (const Trained& trained : chosen) {
      EXPECT_EQ(trained.weights, given.weights) << ranks << " ranks";
      EXPECT_EQ(trained.losses, given.losses);
      EXPECT_TRUE(trained.kept_budget);
      EXPECT_EQ(trained.buckets, chosen.front().buckets);
      EXPECT_EQ(trained.exchanges < given.exchanges, trained.buckets != given.buckets);
    }
  }
}

TEST(RankTraining, HasTheSameBitsWithBucketsThatPlansChoose) {
  expect_bits_with_chosen_buckets(options_of(test::small_network()));
}

TEST(RankTraining, HasTheSameBitsWithChosenBucketsAndCopies) {
  TrainerOptions options = options_of(network_with_dropout());
  options.memory.mode = MemoryMode::kCopy;
  options.step.optimizer = AdamOptions{.decoupled = true};
  expect_bits_with_chosen_buckets(options);
}

TEST(RankTraining, GoesOnWithAnotherNumberOfRanks) {
  const test::TemporaryFolder folder;
  TrainerOptions options = options_of(network_with_dropout());
  options.training.steps = 4;
  const Trained whole = train_on(1, options).front();
  for (const std::size_t later : {1U, 2U, 3U}) {
    TrainerOptions halves = options;
    halves.checkpoint.folder = folder.file("by " + std::to_string(later));
    halves.training.steps = 2;
    static_cast<void>(train_on(4, halves));
    halves.training.steps = 4;
    halves.checkpoint.resume = true;
    for (const Trained& trained : train_on(later, halves)) {
      EXPECT_EQ(trained.weights, whole.weights) << later << " ranks";
      EXPECT_EQ(trained.losses, std::vector(whole.losses.begin() + 2, whole.losses.end()));
    }
  }
}

}  // namespace
}  // namespace spillway
