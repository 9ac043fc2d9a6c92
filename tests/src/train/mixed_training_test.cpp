// Trainings on mixed images: they go on as they began, mean the same in sub-batches, and take no
// memory where nothing is mixed.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "nets/builder.h"
#include "src/step/machine_size_model.h"
#include "src/train/checkpoint_choice.h"
#include "src/train/trainer.h"
#include "tests/refusal.h"
#include "tests/src/small_training.h"
#include "tests/temporary_folder.h"

namespace spillway {
namespace {

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
TEST_F(MixedTraining, HasTheSameLossInSubBatches) {
  const auto first_loss = [](const std::string& sub_batch) {
    nets::Builder net{"plain", {1, 8, 8}};
    TrainerOptions options = mixed_options(1, {.mixup = 1});
    options.network = net.build(net.linear("fc", net.input(), {.features = 3}));
    options.memory = {.mode = MemoryMode::kResident};
    options.planning.sub_batch = sub_batch;
    float loss = 0;
    Trainer trainer{test::small_context(),
                    std::move(options),
                    {.on_step = [&](auto, auto, const StepReport& step) { loss = step.loss; }}};
    trainer.run();
    return loss;
  };
  const float whole = first_loss("off");
  EXPECT_GT(whole, 0.F);
  EXPECT_NEAR(first_loss("2"), whole, 1e-6F * 10);
  EXPECT_NEAR(first_loss("3"), whole, 1e-6F * 10);
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
