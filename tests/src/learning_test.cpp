// That training ends with a network that has learnt something: data, steps and evaluation together.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <memory>
#include <numeric>
#include <span>
#include <string>
#include <vector>

#include "nets/families/network_catalogue.h"
#include "nets/families/published_networks.h"
#include "src/io/data/prepared_dataset.h"
#include "src/io/data/synthetic.h"
#include "src/train/train.h"
#include "tests/src/network_in_memory.h"

namespace spillway {
namespace {

using test::NetworkInMemory;

constexpr std::uint64_t kSeed = 1;

std::unique_ptr<Dataset> drawn_images(const nets::Network& network, std::size_t size, Split split) {
  auto images =
      std::make_unique<SyntheticDataset>(network.input(), network.classes(), size, kSeed, split);
  const ChannelStatistics statistics{
      .mean = std::vector<float>(network.input().channels, 0.3F),
      .deviation = std::vector<float>(network.input().channels, 0.2F)};
  return std::make_unique<PreparedDataset>(std::move(images), statistics, network.input());
}

double mean(std::span<const float> values) {
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

// The losses of `steps` steps from the usual initial values.
std::vector<float> train_for(std::uint64_t steps, NetworkInMemory& net, const DatasetPair& data,
                             float learning_rate) {
  net.session().state().initialise(kSeed);
  std::vector<float> losses;
  train(net.session(), data,
        {.steps = steps, .learning_rate = {.rate = learning_rate}, .seed = kSeed},
        {.on_step = [&](auto, auto, const StepReport& report) { losses.push_back(report.loss); }});
  return losses;
}

// Ten classes: guesses are right in a tenth of the images, 40 of the 400 give or take 6.
TEST(Learning, LenetTellsDrawnImagesApartThatItNeverSaw) {
  NetworkInMemory net{nets::build_network("lenet"),
                      {.batch = 32, .convolution = ConvolutionAlgorithm::kDirect},
                      MemoryMode::kResident};
  const DatasetPair data{.train = drawn_images(net.network(), 10'000, Split::kTrain),
                         .test = drawn_images(net.network(), 400, Split::kTest)};
  const std::vector<float> losses = train_for(200, net, data, 0.01F);
  const std::span<const float> all{losses};
  EXPECT_LT(mean(all.last(20)), mean(all.first(20)) / 2);
  EXPECT_GT(evaluate(net.session(), *data.test).accuracy, 0.8);
}

// Too few steps to learn what figures are, but enough to know 32 images of four classes again, with
// the running statistics too.
TEST(Learning, Resnet18KnowsImagesAgain) {
  NetworkInMemory net{
      nets::build_network("resnet18", {.image = nets::Shape{3, 32, 32}, .classes = 4}),
      {.batch = 16, .convolution = ConvolutionAlgorithm::kDirect},
      MemoryMode::kResident};
  const DatasetPair data{.train = drawn_images(net.network(), 32, Split::kTrain),
                         .test = drawn_images(net.network(), 32, Split::kTest)};
  const std::vector<float> losses = train_for(30, net, data, 0.002F);
  const std::span<const float> all{losses};
  EXPECT_LT(mean(all.last(4)), mean(all.first(4)) / 2);
  EXPECT_GT(evaluate(net.session(), *data.train).accuracy, 0.8);
}

// Too few steps for the edges of figures, but enough to find them: a mask of background alone is
// right in some 80 % of the pixels.
TEST(Learning, FcnFindsTheFiguresItWasShown) {
  const nets::FcnWidths widths{.stages = {8, 16, 16, 32, 32}, .hidden = 32};
  NetworkInMemory net{nets::fcn("thin fcn8s", nets::FcnStride::k8, widths, {3, 32, 40}, 5),
                      {.batch = 2, .convolution = ConvolutionAlgorithm::kDirect},
                      MemoryMode::kResident};
  const auto masks = [&](Split split) {
    return std::make_unique<PreparedDataset>(
        std::make_unique<SyntheticMasks>(net.network().input(), 5, 4, kSeed, split),
        ChannelStatistics{.mean = {0.3F, 0.3F, 0.3F}, .deviation = {0.2F, 0.2F, 0.2F}},
        net.network().input());
  };
  const DatasetPair data{.train = masks(Split::kTrain), .test = masks(Split::kTest)};
  const std::vector<float> losses = train_for(24, net, data, 0.005F);
  const std::span<const float> all{losses};
  EXPECT_LT(mean(all.last(4)), mean(all.first(4)) / 2);
  std::vector<std::int32_t> labels(32 * 40);
  double background = 0;
  double counted = 0;
  for (std::size_t i = 0; i < data.train->size(); ++i) {
    data.train->labels(i, labels);
    background += static_cast<double>(std::ranges::count(labels, 0));
    counted += static_cast<double>(std::ranges::count_if(labels, [](auto l) { return l >= 0; }));
  }
  EXPECT_GT(evaluate(net.session(), *data.train).accuracy, background / counted + 0.02);
}

// Trainings of small transformers of each family: where their tensors are changes no bit, and a
// batch in micro-batches is the whole batch.

using test::BlockNumbers;

constexpr std::size_t kTexts = 5;
constexpr std::uint64_t kTextSteps = 3;
constexpr std::size_t kWords = 37;

struct SmallTransformer {
  std::string name;
  nets::Network (*make)();
};

// Gtest looks for this name.
// NOLINTNEXTLINE(readability-identifier-naming)
void PrintTo(const SmallTransformer& c, std::ostream* out) { *out << c.name; }

nets::Network small_gpt() {
  return nets::gpt("small-gpt", {.layers = 2, .heads = 3, .width = 48, .context = 32},
                   nets::tokens(30), kWords);
}
nets::Network small_llama() {
  return nets::llama(
      "small-llama",
      {.layers = 2, .heads = 4, .kv_heads = 2, .width = 48, .hidden = 72, .context = 32},
      nets::tokens(27), kWords);
}
nets::Network small_bert() {
  return nets::bert("small-bert", {.layers = 2, .heads = 2, .width = 48, .context = 32},
                    nets::tokens(32), kWords);
}
nets::Network small_vit() {
  return nets::vit("small-vit", {.layers = 2, .heads = 3, .width = 48, .patch = 4},
                   {.channels = 3, .height = 16, .width = 24}, kWords);
}

class TransformerTraining : public testing::TestWithParam<SmallTransformer> {
 protected:
  [[nodiscard]] static nets::Network network(float dropout) {
    nets::Network network = GetParam().make();
    nets::set_dropout(network, dropout);
    return network;
  }
  [[nodiscard]] static StepOptions options() {
    return {.batch = kTexts,
            .convolution = ConvolutionAlgorithm::kDirect,
            .optimizer = AdamOptions{.weight_decay = 0.01F, .decoupled = true, .clip_norm = 0.5F}};
  }
  static double largest_of(const BlockNumbers& block) {
    double largest = 0;
    for (const float value : block.values) largest = std::max(largest, std::abs(double{value}));
    return largest;
  }
  static std::vector<BlockNumbers> trained(NetworkInMemory net) {
    net.session().state().initialise(1);
    for (std::uint64_t step = 0; step < kTextSteps; ++step) {
      const Batch batch = test::drawn_batch(net.network(), kTexts, step);
      const StepReport report =
          net.session().train({.seed = 1, .step = step, .learning_rate = 1e-3F, .batch = &batch});
      EXPECT_TRUE(std::isfinite(report.loss));
    }
    return test::numbers_of(net.session().state(), net.training_step());
  }
};

TEST_P(TransformerTraining, HasTheSameBitsInAnyMemory) {
  const auto resident = trained({network(0.2F), options(), MemoryMode::kResident});
  for (const MemoryMode mode : {MemoryMode::kManaged, MemoryMode::kCopy}) {
    const auto within = trained({network(0.2F), options(), mode});
    ASSERT_EQ(within.size(), resident.size());
    for (std::size_t b = 0; b < within.size(); ++b) {
      EXPECT_EQ(within[b].values, resident[b].values) << within[b].name;
    }
  }
}

// Sums over the batch are added up in another order: each of at most 160 numbers, in three steps, a
// rounding of 2^-24 of what the largest of a block come to.
TEST_P(TransformerTraining, AddsUpTheGradientsOfMicroBatches) {
  StepOptions sgd = options();
  sgd.optimizer = SgdOptions{.momentum = 0.5F, .clip_norm = 2};
  const auto whole = trained({network(0.2F), sgd, MemoryMode::kResident});
  const auto cut = trained({network(0.2F), sgd, MemoryMode::kManaged, 2});
  ASSERT_EQ(cut.size(), whole.size());
  for (std::size_t b = 0; b < cut.size(); ++b) {
    ASSERT_EQ(cut[b].values.size(), whole[b].values.size()) << whole[b].name;
    const double tolerance = 2e-6 * (1 + largest_of(whole[b]));
    for (std::size_t i = 0; i < cut[b].values.size(); ++i) {
      ASSERT_NEAR(cut[b].values[i], whole[b].values[i], tolerance) << whole[b].name << ' ' << i;
    }
  }
}

std::string word(const testing::TestParamInfo<SmallTransformer>& given) {
  std::string name = given.param.name;
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
}

INSTANTIATE_TEST_SUITE_P(OfEachFamily, TransformerTraining,
                         testing::Values(SmallTransformer{"small-gpt", small_gpt},
                                         SmallTransformer{"small-llama", small_llama},
                                         SmallTransformer{"small-bert", small_bert},
                                         SmallTransformer{"small-vit", small_vit}),
                         word);

}  // namespace
}  // namespace spillway
