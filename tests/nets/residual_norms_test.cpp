#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "nets/builder.h"
#include "nets/families/network_catalogue.h"
#include "nets/layer_role.h"

namespace spillway::nets {
namespace {

std::vector<std::string> norms_of(const std::string& network) {
  return residual_norms(build_network(network));
}

TEST(ResidualNorms, AreTheLastOnesOfBlocksNotThoseOfShortcuts) {
  EXPECT_EQ(
      norms_of("resnet18"),
      (std::vector<std::string>{"layer1.0.bn2", "layer1.1.bn2", "layer2.0.bn2", "layer2.1.bn2",
                                "layer3.0.bn2", "layer3.1.bn2", "layer4.0.bn2", "layer4.1.bn2"}));
  const std::vector<std::string> of_bottlenecks = norms_of("resnet50");
  EXPECT_EQ(of_bottlenecks.size(), 16U);
  EXPECT_EQ(of_bottlenecks.front(), "layer1.0.bn3");
}

TEST(ResidualNorms, AreNotThereWithoutSums) {
  EXPECT_TRUE(norms_of("vgg16").empty());
  EXPECT_TRUE(norms_of("densenet121").empty());
}

// A sum of convolutions, and a norm that another layer reads, too.
TEST(ResidualNorms, BelongToTheSumAlone) {
  Builder net{"mine", {4, 8, 8}};
  const Convolution same{.channels = 4, .kernel = square(3), .padding = square(1)};
  const NodeId convolved = net.convolution("conv1", net.input(), same);
  const NodeId sum = net.sum("sum1", convolved, net.input());
  const NodeId norm = net.batch_norm("norm", net.convolution("conv2", sum, same));
  const NodeId both = net.sum("sum2", norm, sum);
  const NodeId last = net.sum("sum3", net.relu("relu", norm), both);
  EXPECT_TRUE(residual_norms(net.build(net.linear("fc", last, {.features = 3}))).empty());
}

}  // namespace
}  // namespace spillway::nets
