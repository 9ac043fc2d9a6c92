// One network of each family on small images: it trains, and memory changes no bit of it.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <ostream>
#include <string>
#include <vector>

#include "nets/families/network_catalogue.h"
#include "nets/families/published_networks.h"
#include "tests/src/network_in_memory.h"

namespace spillway {
namespace {

using test::NetworkInMemory;

constexpr std::uint64_t kFamilySeed = 1;
constexpr std::size_t kClasses = 10;

struct Case {
  std::string net;
  std::size_t side;  // of the images: the smallest that the network takes, or nearly
  std::size_t
      batch;  // so large that the smallest budget does not hold all: AlexNet is mostly weights
};

// Gtest looks for this name.
// NOLINTNEXTLINE(readability-identifier-naming)
void PrintTo(const Case& c, std::ostream* out) {
  *out << c.batch << " x " << c.side << " through " << c.net;
}

// What may not change.
struct Trained {
  std::vector<float> losses;
  std::string weights;
};

class NetworkFamilies : public testing::TestWithParam<Case> {
 protected:
  [[nodiscard]] static nets::Network network() {
    const auto& [net, side, batch] = GetParam();
    if (net == "thin fcn8s") {
      const nets::FcnWidths widths{.stages = {8, 8, 16, 16, 16}, .hidden = 24};
      return nets::fcn(net, nets::FcnStride::k8, widths, {3, side, side + 6}, kClasses);
    }
    if (net == "googlenet with heads") {
      return nets::build_network(
          "googlenet",
          {.image = nets::Shape{3, side, side}, .classes = kClasses, .auxiliary_heads = true});
    }
    return nets::build_network(net, {.image = nets::Shape{3, side, side}, .classes = kClasses});
  }
  [[nodiscard]] static Trained train(NetworkInMemory& net) {
    net.session().state().initialise(kFamilySeed);
    Trained trained;
    for (std::uint64_t step = 0; step < 2; ++step) {
      const Batch images = test::drawn_batch(net.network(), GetParam().batch, step);
      const StepReport report = net.session().train(
          {.seed = kFamilySeed, .step = step, .learning_rate = 0.001F, .batch = &images});
      trained.losses.push_back(report.loss);
    }
    trained.weights = net.session().state().sha256();
    return trained;
  }
  [[nodiscard]] static NetworkInMemory in_memory(MemoryMode memory) {
    return {network(),
            {.batch = GetParam().batch, .convolution = ConvolutionAlgorithm::kDirect},
            memory};
  }
};

TEST_P(NetworkFamilies, TrainToTheSameBitsInTheSmallestBudget) {
  NetworkInMemory near = in_memory(MemoryMode::kResident);
  const Trained resident = train(near);
  for (const float loss : resident.losses) EXPECT_TRUE(std::isfinite(loss));
  EXPECT_NE(resident.losses[0], resident.losses[1]);
  for (const MemoryMode memory : {MemoryMode::kManaged, MemoryMode::kCopy}) {
    NetworkInMemory little = in_memory(memory);
    EXPECT_FALSE(little.training_plan().offloads.empty()) << to_string(memory);
    const Trained other = train(little);
    EXPECT_EQ(other.losses, resident.losses) << to_string(memory);
    EXPECT_EQ(other.weights, resident.weights) << to_string(memory);
  }
}

INSTANTIATE_TEST_SUITE_P(OfTheCatalogue, NetworkFamilies,
                         testing::Values(Case{"alexnet", 115, 48}, Case{"overfeat", 71, 8},
                                         Case{"vgg:1,2,1,1,1", 32, 2}, Case{"googlenet", 32, 2},
                                         Case{"inception-v3", 75, 2}, Case{"inception-v4", 75, 2},
                                         Case{"resnet34", 32, 2}, Case{"resnet:1,2,1,1", 32, 2},
                                         Case{"densenet121", 32, 2}, Case{"thin fcn8s", 17, 2},
                                         Case{"googlenet with heads", 80, 2}));

}  // namespace
}  // namespace spillway
