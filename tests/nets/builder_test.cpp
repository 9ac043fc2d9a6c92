#include "nets/builder.h"

#include <gtest/gtest.h>

#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "nets/families/network_catalogue.h"
#include "nets/layer_role.h"
#include "nets/network.h"
#include "nets/shape.h"
#include "tests/refusal.h"

namespace spillway::nets {
namespace {

constexpr Shape kWide{.channels = 3, .height = 8, .width = 6};

// Returns the message with which `build` is refused, or "accepted".
std::string build_refusal(const std::function<void(Builder&)>& build, const Shape& image = kWide) {
  return test::refusal([&] {
    Builder net{"toy", image};
    build(net);
    return net;
  });
}

// The output shape of a window over an image.
struct Window {
  Layer layer;
  Shape image;
  Shape output;
};

const std::vector<Window> kWindows{
    // (8 + 2 - 3) / 2 + 1 = 4 down and (6 + 0 - 5) / 1 + 1 = 2 across.
    {Convolution{.channels = 7,
                 .kernel = {.height = 3, .width = 5},
                 .stride = {.height = 2, .width = 1},
                 .padding = {.height = 1, .width = 0}},
     kWide,
     {7, 4, 2}},
    // A kernel of 3 with dilation 2 covers 5: (8 + 0 - 5) / 1 + 1 = 4 down. Across: (6 + 2 - 3) / 2
    // + 1 = 3.
    {Convolution{.channels = 6,
                 .kernel = square(3),
                 .stride = {.height = 1, .width = 2},
                 .padding = {.height = 0, .width = 1},
                 .dilation = {.height = 2, .width = 1},
                 .groups = 3},
     kWide,
     {6, 4, 3}},
    // Leftover elements without a full window are dropped.
    {Pool{}, {2, 7, 5}, {2, 3, 2}},
    // Seven rows: windows of 3 by 2 end at row 7 (0-2, 2-4, 4-6) without leftovers. Six rows: 0-2
    // and 2-4 leave row 5, with a window that starts at 4.
    {Pool{.kernel = square(3), .stride = square(2), .rounds_up = true}, {2, 7, 6}, {2, 3, 3}},
    // Padded by 1, windows of 2 by 3 start at -1, 2 and 5 of six rows; the last one holds row 5 and
    // padding. Five rows have no third window, since it would start in the padding.
    {Pool{.kernel = square(2), .stride = square(3), .padding = square(1), .rounds_up = true},
     {2, 6, 5},
     {2, 3, 2}},
};

TEST(Builder, InfersTheShapeOfAWindow) {
  for (const auto& [layer, image, output] : kWindows) {
    Builder net{"toy", image};
    EXPECT_EQ(to_string(net.shape(net.add("window", layer, {net.input()}))), to_string(output));
  }
}

// (8 - 1) 2 - 2 + 3 = 15 down, and 1 more; (6 - 1) 3 - 0 + 2 (2 - 1) + 1 = 18 across.
TEST(Builder, ATransposedConvolutionMakesWhatAConvolutionWouldRead) {
  Builder net{"toy", kWide};
  const NodeId x = net.transposed_convolution("up", net.input(),
                                              {.channels = 5,
                                               .kernel = {.height = 3, .width = 2},
                                               .stride = {.height = 2, .width = 3},
                                               .padding = {.height = 1, .width = 0},
                                               .dilation = {.height = 1, .width = 2},
                                               .output_padding = {.height = 1, .width = 0}});
  EXPECT_EQ(net.shape(x), (Shape{.channels = 5, .height = 16, .width = 18}));
  const NodeId back = net.convolution("down", x,
                                      {.channels = 3,
                                       .kernel = {.height = 3, .width = 2},
                                       .stride = {.height = 2, .width = 3},
                                       .padding = {.height = 1, .width = 0},
                                       .dilation = {.height = 1, .width = 2}});
  EXPECT_EQ(net.shape(back), kWide);
}

TEST(Builder, CropsToAnotherLayersSize) {
  Builder net{"toy", kWide};
  const NodeId half = net.pool("half", net.input(), {});
  EXPECT_EQ(net.shape(net.crop("middle", net.input(), half)),
            (Shape{.channels = 3, .height = 4, .width = 3}));
  // The last rows are 4 to 7, the last columns 3 to 5.
  EXPECT_EQ(net.shape(net.crop("corner", net.input(), half,
                               {.is_centred = false, .offset = {.height = 4, .width = 3}})),
            (Shape{.channels = 3, .height = 4, .width = 3}));
}

TEST(Builder, JoinsChannels) {
  Builder net{"toy", kWide};
  const NodeId five = net.convolution("five", net.input(), {.channels = 5});
  EXPECT_EQ(net.shape(net.concat("all", {net.input(), five, five})),
            (Shape{.channels = 3 + 5 + 5, .height = kWide.height, .width = kWide.width}));
}

TEST(Builder, InfersTheShapesOfAllOtherLayers) {
  Builder net{"toy", kWide};
  const NodeId norm = net.batch_norm("norm", net.input());
  const NodeId relu = net.relu("relu", norm);
  const NodeId sum = net.sum("sum", norm, relu);
  EXPECT_EQ(net.shape(sum), kWide);
  EXPECT_EQ(net.shape(net.dropout("drop", sum, {})), kWide);
  EXPECT_EQ(net.shape(net.local_response_norm("local", sum, {})), kWide);
  EXPECT_EQ(net.shape(net.global_average_pool("mean", sum)), Shape{.channels = 3});
  EXPECT_EQ(net.shape(net.flatten("flat", sum)), Shape{.channels = kWide.elements()});
  EXPECT_EQ(net.shape(net.linear("fc", sum, {.features = 5})), Shape{.channels = 5});
}

TEST(Builder, EndsTheNetworkWithTheLoss) {
  Builder net{"toy", kWide};
  const NodeId logits = net.linear("fc", net.input(), {.features = 5});
  const Network network = net.build(logits);
  EXPECT_EQ(network.name, "toy");
  EXPECT_EQ(network.input(), kWide);
  EXPECT_EQ(network.classes(), 5U);
  EXPECT_EQ(network.labels(), square(1));
  EXPECT_TRUE(std::holds_alternative<SoftmaxCrossEntropy>(network.nodes.back().layer));
  EXPECT_EQ(network.nodes.back().inputs, std::vector{logits});
}

TEST(Builder, TakesALossForEachPixel) {
  Builder net{"toy", kWide};
  const Network network = net.build(net.convolution("scores", net.input(), {.channels = 5}));
  EXPECT_EQ(network.classes(), 5U);
  EXPECT_EQ(network.labels(), (Extent{.height = 8, .width = 6}));
}

// A refused layer, the description after its name, and the cause. Layers with two inputs read the
// image and a pooled one, 3x4x3.
struct BadLayer {
  Layer layer;
  std::string place;
  std::string cause;
};

const std::vector<BadLayer> kBadLayers{
    {Convolution{.channels = 4, .groups = 2}, "convolution 1x1, 4 channels, 2 groups",
     "divides its 4 channels and the 3 it reads"},
    {TransposedConvolution{.channels = 3, .groups = 0},
     "transposed convolution 1x1, 3 channels, 0 groups", "a number of groups that divides"},
    {TransposedConvolution{.channels = 2, .padding = square(3)},
     "transposed convolution 1x1, 2 channels, padding 3", "use less padding"},
    {TransposedConvolution{.channels = 2, .output_padding = square(1)},
     "transposed convolution 1x1, 2 channels, output padding 1", "less than its stride"},
    {Crop{.is_centred = false, .offset = {.height = 5, .width = 3}}, "crop, offset 5x3",
     "no window of 3x4x3 in what it reads, 3x8x6"},
    {Pool{.kernel = square(7)}, "max pool 7x7, stride 2",
     "does not fit what it reads, 3x8x6; use a larger --image-size"},
    {Add{}, "add", "only equal shapes and reads 3x8x6 and 3x4x3"},
    {Concat{}, "concat", "one height and width and reads 3x8x6 and 3x4x3"},
    {LocalResponseNorm{.size = 4}, "local response norm over 4 channels", "an odd number"},
    {LocalResponseNorm{.k = 0}, "local response norm over 5 channels", "a k above 0"},
    {Linear{.features = 0}, "linear, 0 features", "at least one feature"},
    {Convolution{.channels = 0}, "convolution 1x1, 0 channels", "at least one channel"},
    {Pool{.stride = square(0)}, "max pool 2x2, stride 0", "a stride of at least 1"},
    {Pool{.padding = square(2)}, "max pool 2x2, stride 2, padding 2",
     "its padding must be less than its kernel"},
    {Pool{.kind = PoolKind::kAverage,
          .padding = square(2),
          .counts_padding = true,
          .rounds_up = true},
     "average pool 2x2, stride 2, padding 2 counted, rounding up", "in the padding alone"},
    {Dropout{.probability = 1}, "dropout", "at least 0 and less than 1"},
};

TEST(Builder, RefusesLayersThatCannotBe) {
  for (const BadLayer& bad : kBadLayers) {
    const bool reads_two = std::holds_alternative<Add>(bad.layer) ||
                           std::holds_alternative<Concat>(bad.layer) ||
                           std::holds_alternative<Crop>(bad.layer);
    const std::string sentence = build_refusal([&](Builder& net) {
      std::vector<NodeId> inputs{net.input()};
      if (reads_two) inputs.push_back(net.pool("half", net.input(), {}));
      net.add("x", bad.layer, std::move(inputs));
    });
    EXPECT_TRUE(sentence.starts_with("layer x (" + bad.place + ") ")) << sentence;
    EXPECT_NE(sentence.find(bad.cause), std::string::npos) << sentence;
  }
}

// Layers that read 5 tokens of 24 elements.
TEST(Builder, RefusesHeadsThatCannotBe) {
  const std::vector<BadLayer> all{
      {Attention{.heads = 0}, "causal attention, 0 heads", "needs at least one head"},
      {Rotary{.heads = 4, .kv_heads = 3}, "rotary positions of 4 heads that share 3 key heads",
       "needs a number of key heads that divides its 4 heads, which 3 does not"},
      {Attention{.heads = 2, .kv_heads = 4}, "causal attention, 2 heads that share 4 key heads",
       "divides its 2 heads, which 4 does not"},
      {Attention{.heads = 5, .causal = false}, "attention, 5 heads",
       "reads 24 numbers a token, which are not queries of 5 heads with keys and values of 5"},
      {Attention{.heads = 32, .kv_heads = 1}, "causal attention, 32 heads that share 1 key head)",
       "reads 24 numbers a token, which are not queries of 32 heads with keys and values of 1"},
  };
  for (const BadLayer& bad : all) {
    const std::string sentence = build_refusal(
        [&](Builder& net) { net.add("x", bad.layer, {net.input()}); }, sequence(5, 24));
    EXPECT_TRUE(sentence.starts_with("layer x (" + bad.place)) << sentence;
    EXPECT_NE(sentence.find(bad.cause), std::string::npos) << sentence;
  }
}

TEST(Builder, RefusesLossesOfSeveralSizes) {
  const std::string sentence = build_refusal([](Builder& net) {
    net.auxiliary_loss("aux", net.pool("half", net.input(), {}), 0.5F);
    [[maybe_unused]] auto network = net.build(net.input());
  });
  EXPECT_TRUE(
      sentence.starts_with("layer aux (softmax cross-entropy, weight 0.5) reads 3x4x3, but "
                           "the last loss 3x8x6"))
      << sentence;
}

TEST(Builder, RefusesANameUsedBefore) {
  EXPECT_EQ(build_refusal([](Builder& net) { net.relu("a", net.relu("a", net.input())); }),
            "network toy has two layers named a; give each layer a name of its own");
}

TEST(Builder, RefusesAnEmptyImage) {
  const std::string sentence =
      build_refusal([](Builder&) {}, {.channels = 3, .height = 0, .width = 8});
  EXPECT_TRUE(sentence.starts_with("network toy cannot read images of 3x0x8")) << sentence;
}

// Windows of 3 by 2, padded by 1, start at -1, 1, ... With 7 rows the last one ends in the padding,
// row 7. With 6 rows the padding is row 6, and the window from row 5 ends behind it, at row 7.
TEST(Builder, RefusesAnAverageThatCountsWhatIsBehindThePadding) {
  const auto average = [](std::size_t rows, bool counts_padding) {
    const auto build = [=](Builder& net) {
      net.pool("p", net.input(),
               {.kind = PoolKind::kAverage,
                .kernel = square(3),
                .padding = square(1),
                .counts_padding = counts_padding,
                .rounds_up = true});
    };
    return build_refusal(build, {.channels = 1, .height = rows, .width = 7});
  };
  EXPECT_NE(average(6, true).find("counts the padding of a last window"), std::string::npos);
  EXPECT_EQ(average(6, false), "accepted");
  EXPECT_EQ(average(7, true), "accepted");
}

TEST(Builder, TakesAnInputFromElsewhereForABug) {
  Builder net{"toy", kWide};
  EXPECT_THROW(net.relu("relu", NodeId{7}), um::ContractError);
  EXPECT_THROW(net.add("sum", Add{}, {net.input()}), um::ContractError);
  EXPECT_THROW(net.add("all", Concat{}, {net.input()}), um::ContractError);
  EXPECT_THROW(net.add("drop", Dropout{}, {net.input(), net.input()}), um::ContractError);
}

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

TEST(CountParameters, CountsKernelsOfTheirGroupAlone) {
  Builder net{"toy", {.channels = 4, .height = 4, .width = 4}};
  const Network network = net.build(
      net.convolution("conv", net.input(), {.channels = 6, .kernel = square(3), .groups = 2}));
  EXPECT_EQ(count_parameters(network), 6U * (2U * 3U * 3U) + 6U);
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

constexpr std::size_t kHalf = 1ULL << 32U;

TEST(SaturatedProduct, IsTheProductWhereThatFits) {
  EXPECT_EQ(saturated_product({}), 1U);
  EXPECT_EQ(saturated_product({3, 5, 7}), 105U);
  EXPECT_EQ(saturated_product({kHalf, kHalf - 1}), SIZE_MAX - kHalf + 1);
}

TEST(SaturatedProduct, IsTheLargestNumberWhereItDoesNotFit) {
  EXPECT_EQ(saturated_product({kHalf, kHalf}), SIZE_MAX);
  EXPECT_EQ(saturated_product({kHalf, kHalf, 3}), SIZE_MAX);
}

TEST(SaturatedProduct, WithZeroIsZeroWhateverTheOthers) {
  EXPECT_EQ(saturated_product({kHalf, kHalf, 0}), 0U);
}

TEST(SaturatedSum, IsTheSumOrTheLargestNumber) {
  EXPECT_EQ(saturated_sum({}), 0U);
  EXPECT_EQ(saturated_sum({3, 5, 7}), 15U);
  EXPECT_EQ(saturated_sum({SIZE_MAX - 1, 1}), SIZE_MAX);
  EXPECT_EQ(saturated_sum({SIZE_MAX, 2, 3}), SIZE_MAX);
}

// A layer that does not fit the rest of its network is refused without a line here.
TEST(LayerRole, IsLookedAtInNetworksThatABuilderMakes) {
  EXPECT_EQ(test::refusal([] {
              Builder net{"toy", tokens(6)};
              const NodeId x =
                  net.add("wte", Embedding{.vocabulary = 4, .features = 3}, {net.input()});
              return net.build(x, {.vocabulary = 5}, {});
            }),
            "layer wte (embedding of 4 tokens, 3 features) knows fewer tokens than the network's "
            "vocabulary of 5");
}

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

// The inputs are convolutions, or a norm that another layer reads, too.
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
