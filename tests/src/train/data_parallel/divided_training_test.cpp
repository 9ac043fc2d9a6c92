// Trainings whose ranks divide the optimizer's numbers among them (ZeRO, stage 1), or whose state
// is far between steps: the bits of those that do neither.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "src/plan/plans.h"
#include "src/train/trainer.h"
#include "tests/src/every_optimizer.h"
#include "tests/src/small_training.h"
#include "tests/src/train/data_parallel/trained_ranks.h"
#include "tests/temporary_folder.h"

namespace spillway {
namespace {

using testing::on_ranks;
using testing::options_of;
using testing::train_on;
using testing::Trained;

TrainerOptions wide_options() {
  TrainerOptions options = options_of(test::wide_network());
  options.planning.planner = "capacity";  // which is quick
  return options;
}

TrainerOptions divided(TrainerOptions options) {
  options.ranks.divides_optimizer = true;
  return options;
}

// Expects the same result of every rank.
void expect_all(const std::vector<Trained>& trained, const Trained& expected) {
  for (const Trained& of_rank : trained) {
    EXPECT_EQ(of_rank.losses, expected.losses);
    EXPECT_EQ(of_rank.weights, expected.weights);
    EXPECT_TRUE(of_rank.kept_budget);
  }
}

void expect_same_where_divided(TrainerOptions options) {
  const Trained whole = train_on(1, options).front();
  ASSERT_FALSE(whole.weights.empty());
  expect_all(train_on(1, divided(options)), whole);
  for (const std::size_t ranks : testing::kSeveralRanks) {
    SCOPED_TRACE(std::to_string(ranks) + " ranks");
    expect_all(train_on(ranks, divided(options)), whole);
  }
  for (const MemoryMode mode : {MemoryMode::kCopy, MemoryMode::kResident}) {
    options.memory.mode = mode;
    options.memory.budget = mode == MemoryMode::kCopy ? "min" : "auto";
    expect_all(train_on(2, divided(options)), whole);
  }
}

TEST(DividedTraining, HasTheSameBitsWithEveryOptimizer) {
  TrainerOptions options = wide_options();
  for (const OptimizerOptions& optimizer : test::every_optimizer()) {
    SCOPED_TRACE(test::printed(optimizer));
    options.step.optimizer = optimizer;
    expect_all(train_on(3, divided(options)), train_on(1, options).front());
  }
}

TEST(DividedTraining, HasTheSameBitsWithAdamAndAnAverage) {
  TrainerOptions options = wide_options();
  options.step.optimizer = AdamOptions{.weight_decay = 0.1F, .decoupled = true};
  options.step.average_decay = 0.9;
  expect_same_where_divided(options);
}

// The norm needs all gradients on all ranks, before any update.
TEST(DividedTraining, HasTheSameBitsWithAClippedNorm) {
  TrainerOptions options = wide_options();
  options.step.optimizer = AdamOptions{.clip_norm = 0.01F};
  expect_same_where_divided(options);
}

// Weights whose gradient comes in parts, the last of them small.
TEST(DividedTraining, HasTheSameBitsWhereLayersAreUpdatedInParts) {
  TrainerOptions options = wide_options();
  options.step.largest_update = um::Bytes{34ULL << 10U};
  options.step.optimizer = AdamOptions{};
  const Trained whole = train_on(1, options).front();
  expect_all(train_on(3, divided(options)), whole);
}

TEST(DividedTraining, HasTheSameBitsWithUnevenShares) {
  TrainerOptions options = wide_options();
  options.step.batch = 14;
  options.planning.micro_batches.count = 7;
  const Trained whole = train_on(1, options).front();
  expect_all(train_on(3, divided(options)), whole);
}

TEST(DividedTraining, FastestReductionIsTheSameOnAllRanks) {
  TrainerOptions options = wide_options();
  options.ranks.reduction = RankReduction::kFastest;
  const Trained whole = train_on(3, options).front();
  expect_all(train_on(3, divided(options)), whole);
}

TEST(DividedTraining, GoesOnWithAnotherNumberOfRanksDividedOrNot) {
  const test::TemporaryFolder folder;
  TrainerOptions options = wide_options();
  options.step.optimizer = AdamOptions{.decoupled = true};
  options.training.steps = 4;
  const Trained whole = train_on(1, options).front();
  for (const bool is_divided : {false, true}) {
    for (const std::size_t later : {1U, 2U, 3U}) {
      TrainerOptions halves = options;
      halves.ranks.divides_optimizer = !is_divided;
      halves.checkpoint.folder = folder.file(std::to_string(later) + (is_divided ? "d" : "w"));
      halves.training.steps = 2;
      static_cast<void>(train_on(4, halves));
      halves.training.steps = 4;
      halves.checkpoint.resume = true;
      halves.ranks.divides_optimizer = is_divided;
      for (const Trained& trained : train_on(later, halves)) {
        EXPECT_EQ(trained.weights, whole.weights) << later << " ranks";
      }
    }
  }
}

// SGD keeps one number for each weight, Adam two. Those of fc1 are divided by 4, in units of 16.
TEST(DividedTraining, NeedsAsMuchLessAsTheFormulaSays) {
  const auto need = [](bool is_divided, const OptimizerOptions& optimizer) {
    um::Bytes resident;
    ThreadRanks group{4};
    static_cast<void>(on_ranks(group, [&](Communicator& communicator) {
      TrainerOptions options = wide_options();
      options.step.optimizer = optimizer;
      options.ranks.divides_optimizer = is_divided;
      options.ranks.communicator = communicator;
      const Trainer trainer{test::small_context(), options};
      if (communicator.rank() == 0) resident = trainer.need().resident;
    }));
    return resident;
  };
  constexpr std::size_t kFloats = 16 * 6 * 6 * 80 + 80;
  constexpr std::size_t kSlice = 11'552;  // a quarter is 11,540
  for (const auto& [optimizer, numbers] :
       {std::pair{OptimizerOptions{SgdOptions{.momentum = 0.9F}}, 1U},
        std::pair{OptimizerOptions{AdamOptions{}}, 2U}}) {
    const um::Bytes saved = need(false, optimizer) - need(true, optimizer);
    EXPECT_EQ(saved.count(), numbers * (kFloats - kSlice) * sizeof(float));
  }
}

TEST(FarStateOfRanks, HasTheSameBits) {
  TrainerOptions options = wide_options();
  options.step.optimizer = AdamOptions{.decoupled = true};
  const Trained whole = train_on(1, options).front();
  options.planning.state = StateRule::kFar;
  options.memory.budget = "min";
  for (const MemoryMode mode : {MemoryMode::kManaged, MemoryMode::kCopy}) {
    options.memory.mode = mode;
    for (const std::size_t ranks : {1U, 2U, 4U}) {
      SCOPED_TRACE(std::to_string(ranks) + " ranks");
      expect_all(train_on(ranks, options), whole);
      expect_all(train_on(ranks, divided(options)), whole);
    }
  }
}

// The first rank alone reads the checkpoint; the others' state may be far when they get it.
TEST(FarStateOfRanks, GoesOnFromACheckpoint) {
  const test::TemporaryFolder folder;
  TrainerOptions options = wide_options();
  options.step.optimizer = AdamOptions{};
  options.training.steps = 4;
  const Trained whole = train_on(1, options).front();
  options.planning.state = StateRule::kFar;
  options.memory.budget = "min";
  options.checkpoint.folder = folder.file("far");
  options.training.steps = 2;
  static_cast<void>(train_on(2, options));
  options.training.steps = 4;
  options.checkpoint.resume = true;
  for (const Trained& trained : train_on(4, options)) EXPECT_EQ(trained.weights, whole.weights);
}

}  // namespace
}  // namespace spillway
