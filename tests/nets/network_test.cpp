#include "nets/network.h"

#include <gtest/gtest.h>

#include "nets/builder.h"

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

}  // namespace
}  // namespace spillway::nets
