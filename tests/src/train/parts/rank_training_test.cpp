// Trainings of several ranks, which are threads here, beside the same of other numbers of ranks.
#include <gtest/gtest.h>

#include <cstdint>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

#include "nets/builder.h"
#include "src/ranks/thread_communicator.h"
#include "src/train/trainer.h"
#include "tests/refusal.h"
#include "tests/src/ranks/on_ranks.h"
#include "tests/src/small_training.h"
#include "tests/temporary_folder.h"

namespace spillway {
namespace {

using testing::on_ranks;

constexpr std::size_t kShards = 4;

nets::Network network_with_dropout() {
  nets::Builder net{"dropping", {1, 8, 8}};
  nets::NodeId x = net.convolution("conv", net.input(), {.channels = 4, .kernel = nets::square(3)});
  x = net.dropout("drop", net.relu("relu", net.batch_norm("norm", x)), {.probability = 0.5F});
  return net.build(net.linear("fc", x, {.features = 3}));
}

TrainerOptions options_of(nets::Network network) {
  return {
      .network = std::move(network),
      .step = {.batch = 8, .convolution = ConvolutionAlgorithm::kDirect},
      .memory = {.budget = "min+50%"},
      .training = {.steps = 3, .evaluate_every = 0},
      // So small that there are several.
      .ranks = {.shards = kShards, .buckets = {.first = um::Bytes{64}, .others = um::Bytes{512}}}};
}

struct Trained {
  std::vector<float> losses;
  std::string weights;
  bool kept_budget = true;
  prefetch::BucketRule buckets{};
  std::size_t exchanges = 0;
  friend bool operator==(const Trained&, const Trained&) = default;
};

// By rank.
std::vector<Trained> train_on(std::size_t ranks, const TrainerOptions& options) {
  ThreadRanks group{ranks};
  std::vector<Trained> trained(ranks);
  const auto errors = on_ranks(group, [&](Communicator& communicator) {
    Trained& of_rank = trained[communicator.rank()];
    TrainerOptions own = options;
    own.ranks.communicator = &communicator;
    Trainer trainer{
        test::small_context(), own, {.on_step = [&](auto, auto, const StepReport& report) {
          of_rank.losses.push_back(report.loss);
        }}};
    const TrainingSummary summary = trainer.run();
    of_rank.weights = summary.weights_sha256;
    of_rank.kept_budget = summary.near_peak <= summary.budget;
    of_rank.buckets = trainer.buckets();
    of_rank.exchanges = trainer.plan().exchanges.size();
  });
  EXPECT_EQ(errors, std::vector<std::string>(ranks));
  return trained;
}

// Whatever the number of ranks, and on each of them; returns what it is.
Trained expect_same_on_any(const TrainerOptions& options) {
  const Trained alone = train_on(1, options).front();
  EXPECT_FALSE(alone.weights.empty());
  EXPECT_TRUE(alone.kept_budget);
  for (const std::size_t ranks : {2U, 3U, 4U}) {
    for (const Trained& trained : train_on(ranks, options)) {
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

// Shards that no power of two divides among ranks, and more than the ranks have stacks for.
TEST(RankTraining, HasTheSameBitsWithUnevenShares) {
  TrainerOptions options = options_of(test::small_network());
  options.step.batch = 14;
  options.ranks.shards = 7;
  static_cast<void>(expect_same_on_any(options));
}

TEST(RankTraining, OfOneShardIsAnOrdinaryTraining) {
  TrainerOptions options = options_of(test::small_network());
  options.ranks.shards = 1;
  const Trained sharded = train_on(1, options).front();
  options.ranks = {};
  Trainer ordinary{test::small_context(), options};
  EXPECT_EQ(ordinary.run().weights_sha256, sharded.weights);
}

// Without batch norm the mean over the batch is all that counts; sums are only rounded otherwise.
TEST(RankTraining, LearnsAsWithoutShards) {
  nets::Builder net{"plain", {1, 8, 8}};
  nets::NodeId x = net.convolution("conv", net.input(), {.channels = 4, .kernel = nets::square(3)});
  TrainerOptions options =
      options_of(net.build(net.linear("fc", net.relu("relu", x), {.features = 3})));
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
  for (const std::size_t ranks : {1U, 2U, 3U}) {
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

TEST(RankTraining, AStopOnOneRankEndsAllAfterTheSameStep) {
  const test::TemporaryFolder folder;
  TrainerOptions options = options_of(test::small_network());
  options.training.steps = 50;
  options.checkpoint.folder = folder.file("stopped");
  ThreadRanks group{3};
  std::vector<std::uint64_t> last(3);
  const auto errors = on_ranks(group, [&](Communicator& communicator) {
    std::stop_source stop;
    TrainerOptions own = options;
    own.ranks.communicator = &communicator;
    Trainer trainer{test::small_context(),
                    own,
                    {.on_step =
                         [&](auto step, auto, const auto&) {
                           last[communicator.rank()] = step;
                           if (communicator.rank() == 1 && step == 2) stop.request_stop();
                         }},
                    stop.get_token()};
    EXPECT_THROW(trainer.run(), Interrupted);
  });
  EXPECT_EQ(errors, std::vector<std::string>(3));
  EXPECT_EQ(last, std::vector<std::uint64_t>(3, last[0]));
  EXPECT_GE(last[0], 3U) << "the ranks tell each other before a step";

  options.checkpoint.resume = true;
  options.training.steps = last[0] + 1;
  EXPECT_EQ(train_on(2, options).front().losses.size(), 1U);
}

TEST(RankTraining, NothingLeftIsSoOnAllRanks) {
  const test::TemporaryFolder folder;
  TrainerOptions options = options_of(test::small_network());
  options.checkpoint.folder = folder.file("done");
  static_cast<void>(train_on(2, options));
  options.checkpoint.resume = true;
  ThreadRanks group{2};
  const auto errors = on_ranks(group, [&](Communicator& communicator) {
    TrainerOptions own = options;
    own.ranks.communicator = &communicator;
    EXPECT_THROW((Trainer{test::small_context(), own}), NothingLeft);
  });
  EXPECT_EQ(errors, std::vector<std::string>(2));
}

TEST(RankTraining, RefusesRanksThatDoNotTrainTheSame) {
  ThreadRanks group{2};
  const auto errors = on_ranks(group, [&](Communicator& communicator) {
    TrainerOptions own = options_of(test::small_network());
    own.ranks.communicator = &communicator;
    own.ranks.agreement = {{.name = "command line", .text = std::to_string(communicator.rank())}};
    Trainer{test::small_context(), own};
  });
  for (const std::string& error : errors) {
    EXPECT_NE(error.find("command line"), std::string::npos) << error;
  }
}

TEST(RankTraining, RefusesWhatShardsCannotDo) {
  const auto refusal = [](const auto& change) {
    TrainerOptions options = options_of(test::small_network());
    ThreadRanks ranks{1};
    const auto communicator = ranks.end(0);
    options.ranks.communicator = communicator.get();
    change(options);
    return test::refusal([&] { Trainer{test::small_context(), options}; });
  };
  EXPECT_NE(refusal([](auto& options) { options.ranks.shards = 3; }).find("equal shards"),
            std::string::npos);
  EXPECT_NE(refusal([](auto& options) { options.planning.sub_batch = "2"; }).find("--sub-batch"),
            std::string::npos);
  EXPECT_NE(
      refusal([](auto& options) { options.planning.planner = "on-demand"; }).find("on-demand"),
      std::string::npos);
  EXPECT_NE(
      refusal([](auto& options) { options.planning.state = StateRule::kFar; }).find("--state far"),
      std::string::npos);
  EXPECT_NE(refusal([](auto& options) { options.training.mixing.mixup = 0.2F; }).find("mixup"),
            std::string::npos);
}

TEST(RankTraining, RefusesMoreRanksThanShards) {
  ThreadRanks group{3};
  TrainerOptions options = options_of(test::small_network());
  options.ranks.shards = 2;
  const auto errors = on_ranks(group, [&](Communicator& communicator) {
    TrainerOptions own = options;
    own.ranks.communicator = &communicator;
    Trainer{test::small_context(), own};
  });
  for (const std::string& error : errors) {
    EXPECT_NE(error.find("more --shards"), std::string::npos) << error;
  }
}

}  // namespace
}  // namespace spillway
