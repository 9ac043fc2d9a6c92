// Trainings with moving averages, RMSprop, frozen layers, the best checkpoint and an early end.
// Trainings on mixed images: they go on as they began, mean the same in micro-batches, and take no
// memory where nothing is mixed.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <optional>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

#include "nets/builder.h"
#include "src/program/machine_size_model.h"
#include "src/train/checkpoint/checkpoint_choice.h"
#include "src/train/trainer.h"
#include "tests/refusal.h"
#include "tests/src/every_optimizer.h"
#include "tests/src/small_training.h"
#include "tests/temporary_folder.h"

namespace spillway {
namespace {

TrainerOptions options_of(std::uint64_t steps, StepOptions step = {}) {
  step.batch = 3;
  step.convolution = ConvolutionAlgorithm::kDirect;
  return {.network = test::small_network(),
          .train_samples = 6,
          .step = std::move(step),
          .memory = {.budget = "min+50%"},
          .training = {.steps = steps, .evaluate_every = 0}};
}

// Whose evaluations are all the same: it does not learn, and has no statistics.
TrainerOptions options_at_rest(std::uint64_t steps) {
  TrainerOptions options = options_of(steps);
  options.network = test::linear_network();
  options.memory = {.mode = MemoryMode::kResident};  // it is too small for pages
  options.training.evaluate_every = 1;
  options.training.learning_rate.rate = 0;
  return options;
}

// SHA-256 of a tensor of the newest checkpoint.
std::string digest(const std::string& folder, const std::string& tensor) {
  return choose_checkpoint(folder).manifest.tensor_digests.at(tensor);
}

class RecipeTraining : public testing::Test {
 protected:
  // Trains four steps, at once and as two and two, and compares the state, of which `tensor` is a
  // part.
  static void expect_resumes(const StepOptions& step, const std::string& tensor) {
    const test::TemporaryFolder folder;
    TrainerOptions whole = options_of(4, step);
    whole.checkpoint.folder = folder.file("whole");
    const std::string sha256 = Trainer{test::small_context(), whole}.run().weights_sha256;
    TrainerOptions halves = options_of(2, step);
    halves.checkpoint.folder = folder.file("halves");
    Trainer{test::small_context(), halves}.run();
    halves.checkpoint.resume = true;
    halves.training.steps = 4;
    EXPECT_EQ((Trainer{test::small_context(), halves}.run().weights_sha256), sha256);
    EXPECT_EQ(digest(folder.file("halves"), tensor), digest(folder.file("whole"), tensor));
  }

  // A stop comes in that step, before its evaluation.
  static void stop_in(std::uint64_t last, const TrainerOptions& options) {
    std::stop_source source;
    const TrainerEvents events{.on_step = [&](auto step, auto, const StepReport&) {
      if (step == last) source.request_stop();
    }};
    EXPECT_THROW((Trainer{test::small_context(), options, events, source.get_token()}.run()),
                 Interrupted);
    EXPECT_TRUE(lacks_evaluation(options));
  }
  static bool lacks_evaluation(const TrainerOptions& options) {
    return choose_checkpoint(options.checkpoint.folder).manifest.checkpoint.lacks_evaluation;
  }

  test::TemporaryFolder folder_;
};

TEST_F(RecipeTraining, GoesOnWithItsMovingAverage) {
  expect_resumes({.average_decay = 0.5}, "conv.average.weight");
}

TEST_F(RecipeTraining, GoesOnWithRmspropsNumbers) {
  expect_resumes({.optimizer = RmspropOptions{.momentum = 0.5F, .clip_norm = 1}},
                 "fc.momentum_buffer.weight");
}

TEST_F(RecipeTraining, GoesOnWithTheStateOfEveryOptimizerAndSmoothedLabels) {
  for (const OptimizerOptions& optimizer : test::every_optimizer()) {
    SCOPED_TRACE(test::printed(optimizer));
    expect_resumes({.optimizer = optimizer, .label_smoothing = 0.1F},
                   "fc." + std::string{states_of(optimizer).back().name} + ".weight");
  }
}

// Without steps the average is what the weights are; with a decay of nearly 0 it follows them.
TEST_F(RecipeTraining, AveragesBeginAsTheWeights) {
  TrainerOptions options = options_of(0, {.average_decay = 0.5});
  options.checkpoint.folder = folder_.file("begun");
  Trainer{test::small_context(), options}.run();
  const std::string folder = folder_.file("begun");
  for (const std::string layer : {"conv", "fc"}) {
    EXPECT_EQ(digest(folder, layer + ".average.weight"), digest(folder, layer + ".weight"));
  }
}

TEST_F(RecipeTraining, EvaluatesTheAveragesAndLeavesTheWeights) {
  std::vector<double> losses;
  const auto run = [&](double decay, std::optional<std::uint64_t> every) {
    TrainerOptions options = options_of(3, {.average_decay = decay});
    options.training.evaluate_every = every;
    TrainerEvents events{.on_evaluation = [&](auto, auto, const Evaluation& evaluation) {
      losses.push_back(evaluation.loss);
    }};
    return Trainer{test::small_context(), options, std::move(events)}.run().weights_sha256;
  };
  const std::string never = run(0.9, 0);
  EXPECT_EQ(run(0.9, 1), never);
  EXPECT_EQ(run(0, 1), never);
  ASSERT_EQ(losses.size(), 6U);
  EXPECT_NE(losses[2], losses[5]);
}

TEST_F(RecipeTraining, LeavesFrozenLayersAsTheyAre) {
  const auto trained = [&](std::uint64_t steps, const std::string& name) {
    TrainerOptions options = options_of(steps, {.frozen = {"conv"}});
    options.checkpoint.folder = folder_.file(name);
    Trainer{test::small_context(), options}.run();
    return folder_.file(name);
  };
  const std::string begun = trained(0, "begun");
  const std::string ended = trained(3, "ended");
  EXPECT_EQ(digest(ended, "conv.weight"), digest(begun, "conv.weight"));
  EXPECT_NE(digest(ended, "fc.weight"), digest(begun, "fc.weight"));
}

TEST_F(RecipeTraining, RefusesToFreezeNothingOrEverything) {
  const auto refused = [](const std::string& pattern) {
    return test::refusal([&] {
      Trainer{test::small_context(), options_of(1, {.frozen = {pattern}})};
    });
  };
  EXPECT_NE(refused("conv7*").find("no layer with parameters is called 'conv7*'"),
            std::string::npos);
  EXPECT_NE(refused("*").find("all layers are frozen"), std::string::npos);
}

// A rate of 0 makes no evaluation better than the first: it ends after two more.
TEST_F(RecipeTraining, EndsEarlyAlsoAfterItWentOn) {
  TrainerOptions options = options_at_rest(9);
  options.patience = 2;
  EXPECT_EQ((Trainer{test::small_context(), options}.run().steps), 3U);
  options.checkpoint.folder = folder_.file("early");
  options.training.steps = 2;
  Trainer{test::small_context(), options}.run();
  options.checkpoint.resume = true;
  options.training.steps = 9;
  EXPECT_EQ((Trainer{test::small_context(), options}.run().steps), 3U);
  EXPECT_THROW((Trainer{test::small_context(), options}), NothingLeft);
}

// A stop comes in the step before an evaluation, which is made when the training goes on.
TEST_F(RecipeTraining, MakesUpForAnEvaluationThatWasStopped) {
  TrainerOptions options = options_at_rest(9);
  options.patience = 2;
  options.checkpoint.folder = folder_.file("stopped");
  stop_in(2, options);
  options.checkpoint.resume = true;
  EXPECT_EQ((Trainer{test::small_context(), options}.run().steps), 3U);
  EXPECT_FALSE(lacks_evaluation(options));
}

// After the last step, too, behind which nothing is left to train.
TEST_F(RecipeTraining, MakesUpForTheLastEvaluation) {
  TrainerOptions options = options_at_rest(2);
  options.patience = 2;
  options.checkpoint.folder = folder_.file("stopped_last");
  stop_in(2, options);
  options.checkpoint.resume = true;
  const TrainingSummary summary = Trainer{test::small_context(), options}.run();
  EXPECT_EQ(summary.steps, 2U);
  EXPECT_TRUE(summary.evaluation.has_value());
  EXPECT_FALSE(lacks_evaluation(options));
  EXPECT_THROW((Trainer{test::small_context(), options}), NothingLeft);
}

// The first evaluation stays the best one.
TEST_F(RecipeTraining, KeepsTheBestCheckpointBesideTheLast) {
  TrainerOptions options = options_at_rest(5);
  options.training.checkpoint_every = 1;
  options.checkpoint = {.folder = folder_.file("best"), .keep = 1, .keep_best = true};
  Trainer{test::small_context(), options}.run();
  const std::filesystem::path folder = folder_.file("best");
  EXPECT_TRUE(std::filesystem::exists(folder / "step-1.json"));
  EXPECT_FALSE(std::filesystem::exists(folder / "step-4.json"));
  EXPECT_TRUE(std::filesystem::exists(folder / "step-5.json"));
  EXPECT_EQ(choose_checkpoint(folder).manifest.checkpoint.best->step, 1U);
}

TEST_F(RecipeTraining, KeepsWhenItEvaluates) {
  TrainerOptions options = options_at_rest(1);
  options.patience = 4;
  options.checkpoint = {.folder = folder_.file("kept"), .keep_best = true};
  Trainer{test::small_context(), options}.run();
  const KeptSettings kept = read_settings(folder_.file("kept"));
  EXPECT_EQ(kept.evaluations, (EvaluationRule{.every = 1, .patience = 4, .keeps_best = true}));
  EXPECT_EQ(kept.train_samples, 6U);
}

// A block of a convolution with a norm, around which the image goes.
TEST_F(RecipeTraining, BeginsResidualBlocksWithZeroGammaWhereAsked) {
  nets::Builder net{"residual", {4, 8, 8}};
  const nets::NodeId conv = net.convolution(
      "conv", net.input(), {.channels = 4, .kernel = nets::square(3), .padding = nets::square(1)});
  const nets::NodeId sum = net.sum("sum", net.batch_norm("norm", conv), net.input());
  TrainerOptions options = options_of(0);
  options.network = net.build(net.linear("fc", sum, {.features = 3}));
  const auto saved = [&](bool is_zero, const std::string& name) {
    options.initial.has_zero_gamma = is_zero;
    options.checkpoint.folder = folder_.file(name);
    Trainer{test::small_context(), options}.run();
    return folder_.file(name);
  };
  const std::string zero = saved(true, "zero");
  const std::string one = saved(false, "one");
  EXPECT_EQ(digest(zero, "norm.weight"), digest(zero, "norm.bias"));
  EXPECT_NE(digest(one, "norm.weight"), digest(zero, "norm.weight"));
  EXPECT_EQ(digest(one, "conv.weight"), digest(zero, "conv.weight"));
  EXPECT_EQ(digest(one, "fc.weight"), digest(zero, "fc.weight"));
}

TEST_F(RecipeTraining, HasNoZeroGammaWithoutResidualBlocks) {
  TrainerOptions options = options_of(1);
  options.initial.has_zero_gamma = true;
  EXPECT_NE(test::refusal([&] {
              Trainer{test::small_context(), options};
            }).find("network small has no residual block that ends with a batch norm"),
            std::string::npos);
}

TEST(BestEvaluation, IsNoneWhoseLossIsNoNumber) {
  std::optional<BestEvaluation> best;
  const Evaluation diverged{.loss = std::nan(""), .accuracy = 1};
  EXPECT_FALSE(take_evaluation(best, 1, diverged, false));
  EXPECT_FALSE(best);
  EXPECT_TRUE(take_evaluation(best, 2, {.loss = 2, .accuracy = 0.1}, false));
  EXPECT_FALSE(take_evaluation(best, 3, diverged, false));
  EXPECT_EQ(best->step, 2U);
  EXPECT_EQ(best->evaluations_since, 1U);
}

TEST_F(RecipeTraining, LearnsFromTheFirstSamplesAlone) {
  TrainerOptions options = options_of(1);
  EXPECT_EQ((Trainer{test::small_context(), options}.data().train->size()), 6U);
  options.train_samples = 1U << 30U;
  EXPECT_NE(test::refusal([&] {
              Trainer{test::small_context(), options};
            }).find("smaller --train-samples"),
            std::string::npos);
}

TrainerOptions mixed_options(std::uint64_t steps, const MixOptions& mixing) {
  return {.network = test::small_network(),
          .train_samples = 8,
          .step = {.batch = 4, .convolution = ConvolutionAlgorithm::kDirect},
          .memory = {.budget = "min+50%"},
          .training = {.steps = steps, .evaluate_every = 0, .mixing = mixing}};
}

std::string mixed_weights(const TrainerOptions& options) {
  return Trainer{test::small_context(), options}.run().weights_sha256;
}

class MixedTraining : public testing::Test {
 protected:
  test::TemporaryFolder folder_;
};

TEST_F(MixedTraining, GoesOnAsItBegan) {
  const MixOptions mixing{.mixup = 0.2F, .cutmix = 1};
  const std::string whole = mixed_weights(mixed_options(5, mixing));
  EXPECT_NE(whole, mixed_weights(mixed_options(5, {})));
  EXPECT_NE(whole, mixed_weights(mixed_options(5, {.mixup = 0.2F})));
  TrainerOptions halves = mixed_options(3, mixing);
  halves.checkpoint.folder = folder_.file("halves");
  mixed_weights(halves);
  EXPECT_EQ(read_settings(halves.checkpoint.folder).mixing, mixing);
  halves.checkpoint.resume = true;
  halves.training.steps = 5;
  halves.training.loader_threads = 3;
  EXPECT_EQ(mixed_weights(halves), whole);
}

// Without batch norm, whose statistics are of what is at once, the first loss is the same mean.
TEST_F(MixedTraining, HasTheSameLossInMicroBatches) {
  const auto first_loss = [](const MicroBatchChoice& choice) {
    TrainerOptions options = mixed_options(1, {.mixup = 1});
    options.network = test::linear_network();
    options.memory = {.mode = MemoryMode::kResident};
    options.planning.micro_batches = choice;
    float loss = 0;
    Trainer trainer{test::small_context(),
                    std::move(options),
                    {.on_step = [&](auto, auto, const StepReport& step) { loss = step.loss; }}};
    trainer.run();
    return loss;
  };
  const float whole = first_loss({});
  EXPECT_GT(whole, 0.F);
  EXPECT_NEAR(first_loss({.size = 2}), whole, 1e-6F * 10);
  EXPECT_NEAR(first_loss({.size = 3}), whole, 1e-6F * 10);
}

TEST_F(MixedTraining, TakesMemoryForLabelsInTrainingAlone) {
  const auto label_bytes = [](const Step& step) {
    return std::ranges::find(step.graph.data, std::string{"labels"}, &prefetch::DataBlock::name)
        ->size;
  };
  const nets::Network net = test::small_network();
  StepOptions options{.batch = 4};
  EXPECT_EQ(label_bytes(make_training_step(net, MachineSizeModel{}, options)), um::Bytes{4 * 4});
  options.mixes_labels = true;
  EXPECT_EQ(label_bytes(make_training_step(net, MachineSizeModel{}, options)),
            um::Bytes{4 * sizeof(MixedLabel)});
  EXPECT_EQ(label_bytes(make_evaluation_step(net, MachineSizeModel{}, options)), um::Bytes{4 * 4});
}

TEST_F(MixedTraining, IsRefusedWhereThereIsNothingToMix) {
  const auto refused = [](TrainerOptions options) {
    return test::refusal([&] { Trainer{test::small_context(), options}; });
  };
  TrainerOptions alone = mixed_options(1, {.cutmix = 1});
  alone.step.batch = 1;
  EXPECT_EQ(
      refused(alone),
      "mixup and CutMix mix images of a batch, but it has one alone; use a larger --batch, or "
      "leave them out");
  nets::Builder pixels{"pixels", {1, 8, 8}};
  TrainerOptions of_pixels = mixed_options(1, {.mixup = 1});
  of_pixels.network = pixels.build(pixels.convolution("conv", pixels.input(), {.channels = 3}));
  EXPECT_EQ(refused(of_pixels),
            "mixup and CutMix mix labels of images, but the network labels each pixel; leave them "
            "out");
}

}  // namespace
}  // namespace spillway
