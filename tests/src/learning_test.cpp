// That training ends with a network that has learnt something: data, steps and evaluation together.

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <numeric>
#include <span>
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

}  // namespace
}  // namespace spillway
