#include "nets/overfeat.h"

#include <gtest/gtest.h>

#include <map>
#include <string>

namespace spillway::nets {
namespace {

// Stages of the paper's table 1 for 231x231.
TEST(Overfeat, HasTheShapesOfThePaper) {
  const Network network = overfeat({.channels = 3, .height = 231, .width = 231}, 1000);
  std::map<std::string, std::string> shapes;
  for (const Node& node : network.nodes) shapes[node.name] = to_string(node.output);
  EXPECT_EQ(shapes.at("conv1"), "96x56x56");
  EXPECT_EQ(shapes.at("conv2"), "256x24x24");
  EXPECT_EQ(shapes.at("pool2"), "256x12x12");
  EXPECT_EQ(shapes.at("conv5"), "1024x12x12");
  EXPECT_EQ(shapes.at("pool5"), "1024x6x6");
  EXPECT_EQ(shapes.at("fc7"), "4096x1x1");
}

}  // namespace
}  // namespace spillway::nets
