#include "nets/network.h"

#include <gtest/gtest.h>

#include <optional>

#include "nets/builder.h"
#include "nets/families/network_catalogue.h"

namespace spillway::nets {
namespace {

constexpr Shape kTiny{.channels = 3, .height = 4, .width = 4};

TEST(CountParameters, CountsWeightsAndBiases) {
  Builder net{"toy", kTiny};
  NodeId x = net.convolution("conv", net.input(),
                             {.channels = 5, .kernel = square(3), .padding = square(1)});
  x = net.batch_norm("norm", x);
  const Network network = net.build(net.linear("fc", x, {.features = 2}));
  // 5 (3 * 3 * 3) + 5, gamma and beta of 5 channels, 2 (5 * 4 * 4) + 2
  EXPECT_EQ(count_parameters(network), 140U + 10U + 162U);
}

TEST(CountParameters, LeavesOutBiasesThatAreNotThere) {
  Builder net{"toy", kTiny};
  const NodeId x = net.convolution("conv", net.input(), {.channels = 5, .bias = false});
  const Network network = net.build(net.linear("fc", x, {.features = 2, .bias = false}));
  EXPECT_EQ(count_parameters(network), 5U * 3U + 2U * 80U);
}

TEST(Dropout, OfANetworkIsThatOfAllItsLayers) {
  Network network = build_network("gpt:1,2,16,8");
  EXPECT_EQ(dropout_of(network), 0.F);
  set_dropout(network, 0.25F);
  EXPECT_EQ(dropout_of(network), 0.25F);
  network.nodes.push_back({.name = "other", .layer = Dropout{.probability = 0.5F}});
  EXPECT_EQ(dropout_of(network), std::nullopt);
  EXPECT_EQ(dropout_of(build_network("resnet18")), std::nullopt);
}

}  // namespace
}  // namespace spillway::nets
