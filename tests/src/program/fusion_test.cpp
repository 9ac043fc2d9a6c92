#include <gtest/gtest.h>

#include "nets/builder.h"
#include "src/program/combinations.h"
#include "src/program/micro_batches.h"
#include "src/program/step_builder.h"
#include "tests/refusal.h"

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

using prefetch::BatchCut;

/// A batch norm of images of 4x4, then one of 1x1.
nets::Network network() {
  nets::Builder builder{"small", {3, 4, 4}};
  nets::NodeId x = builder.convolution("conv", builder.input(), {.channels = 4});
  x = builder.batch_norm("bn1", x);
  x = builder.convolution("last", x, {.channels = 4, .kernel = nets::square(4)});
  x = builder.batch_norm("bn2", x);
  return builder.build(builder.linear("fc", x, {.features = 5}));
}

std::string refusal(std::size_t batch, const BatchCut& cut) {
  return test::refusal(
      [&] { return expect_values_to_normalize(network(), all_of(batch, cut)), 0; });
}

TEST(BatchNormValues, OfOneImageAreRefusedWhereTheImageIsOneNumber) {
  EXPECT_EQ(norm_of_one_value(network(), 1), "bn2");
  EXPECT_EQ(norm_of_one_value(network(), 2), std::nullopt);
  EXPECT_EQ(refusal(1, {.size = 1, .count = 1}),
            "layer bn2 (batch-norm) gets one value per channel and would make zeros of it; train "
            "with a larger batch or larger images");
  EXPECT_EQ(refusal(4, {.size = 1, .count = 4}),
            "layer bn2 (batch-norm) gets one value per channel and would make zeros of it; train "
            "with a larger micro-batch or larger images");
  EXPECT_EQ(refusal(2, {.size = 2, .count = 1}), "accepted");
}

TEST(BatchNormValues, OfALastMicroBatchOfOneImageAreWorthAWarning) {
  EXPECT_EQ(refusal(5, {.size = 2, .count = 3}), "accepted");
  EXPECT_EQ(last_norm_of_one_value(network(), all_of(5, {.size = 2, .count = 3})), "bn2");
  EXPECT_EQ(last_norm_of_one_value(network(), all_of(6, {.size = 2, .count = 3})), std::nullopt);
  EXPECT_EQ(last_norm_of_one_value(network(), all_of(2, {.size = 2, .count = 1})), std::nullopt);
}

TEST(BatchNormValues, MayBeOneWhereNothingIsNormalizedByIt) {
  nets::Builder builder{"plain", {3, 1, 1}};
  const nets::Network plain = builder.build(builder.linear("fc", builder.input(), {.features = 5}));
  EXPECT_EQ(norm_of_one_value(plain, 1), std::nullopt);
}

}  // namespace
}  // namespace spillway
