#include "src/step/fusion.h"

#include <gtest/gtest.h>

#include "nets/builder.h"

namespace spillway {
namespace {

using nets::NodeId;

TEST(Fuse, TakesAReluThatNobodyElsePrecedesIn) {
  nets::Builder builder{"n", {3, 8, 8}};
  const NodeId conv = builder.convolution("conv", builder.input(), {.channels = 4});
  const NodeId relu = builder.relu("relu", conv);
  const nets::Network net = builder.build(builder.linear("fc", relu, {.features = 2}));
  const std::vector<FusedLayer> layers = fuse(net);
  ASSERT_EQ(layers.size(), 3U);  // conv with relu, fc, loss
  EXPECT_EQ(layers[0].node, conv);
  EXPECT_EQ(layers[0].output, relu);
  EXPECT_TRUE(layers[0].relu);
  EXPECT_FALSE(layers[1].relu);
  EXPECT_EQ(layers[1].output, layers[1].node);
}

TEST(Fuse, LeavesAReluAloneWhenItsInputHasAnotherReader) {
  nets::Builder builder{"n", {3, 8, 8}};
  const NodeId conv = builder.convolution("conv", builder.input(), {.channels = 4});
  const NodeId relu = builder.relu("relu", conv);
  const NodeId sum = builder.sum("sum", conv, relu);
  const nets::Network net = builder.build(builder.linear("fc", sum, {.features = 2}));
  EXPECT_EQ(count_readers(net)[static_cast<std::size_t>(conv)], 2U);
  const std::vector<FusedLayer> layers = fuse(net);
  ASSERT_EQ(layers.size(), 5U);
  EXPECT_FALSE(layers[0].relu);
  EXPECT_EQ(layers[1].node, relu);
}

TEST(Fuse, LeavesAReluOnAConcatAloneButNotThoseBeforeIt) {
  nets::Builder builder{"n", {3, 8, 8}};
  const NodeId a = builder.relu("ra", builder.convolution("a", builder.input(), {.channels = 4}));
  const NodeId b = builder.relu("rb", builder.convolution("b", builder.input(), {.channels = 4}));
  const NodeId relu = builder.relu("relu", builder.concat("concat", {a, b}));
  const nets::Network net = builder.build(builder.linear("fc", relu, {.features = 2}));
  const std::vector<FusedLayer> layers = fuse(net);
  ASSERT_EQ(layers.size(), 6U);  // a, b, concat, relu, fc, loss
  EXPECT_TRUE(layers[0].relu);
  EXPECT_TRUE(layers[1].relu);
  EXPECT_FALSE(layers[2].relu);
  EXPECT_EQ(layers[3].output, relu);
}

TEST(Fuse, LeavesAReluOnTheImageOrOnAPoolAlone) {
  nets::Builder builder{"n", {3, 8, 8}};
  const NodeId first = builder.relu("first", builder.input());
  const NodeId second = builder.relu("second", builder.pool("pool", first, {}));
  const nets::Network net = builder.build(builder.linear("fc", second, {.features = 2}));
  for (const FusedLayer& layer : fuse(net)) EXPECT_FALSE(layer.relu);
  EXPECT_EQ(fuse(net).size(), 5U);  // first, pool, second, fc, loss
}

// What a crop has only the size of may be written over by its one reader.
TEST(CountReaders, LeavesOutTheSizeOfACrop) {
  nets::Builder builder{"crop", {3, 8, 8}};
  const NodeId half = builder.pool("half", builder.input(), {});
  const NodeId crop = builder.crop("crop", builder.input(), half);
  const NodeId sum = builder.sum("sum", crop, half);
  const nets::Network net = builder.build(builder.linear("fc", sum, {.features = 2}));
  EXPECT_EQ(count_readers(net), (std::vector<std::size_t>{2, 1, 1, 1, 1, 0}));
}

}  // namespace
}  // namespace spillway
