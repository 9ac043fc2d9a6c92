#include "nets/builder.h"

#include <gtest/gtest.h>

#include <functional>
#include <string>

#include "tests/refusal.h"

namespace spillway::nets {
namespace {

constexpr Shape kWide{.channels = 3, .height = 8, .width = 6};

// The sentence with which `build` is refused; "accepted" when it is not.
std::string build_refusal(const std::function<void(Builder&)>& build, const Shape& image = kWide) {
  return test::refusal([&] {
    Builder net{"toy", image};
    build(net);
    return net;
  });
}

TEST(Builder, InfersTheShapeOfAWindow) {
  Builder net{"toy", kWide};
  // (8 + 2 - 3) / 2 + 1 = 4 down and (6 + 0 - 5) / 1 + 1 = 2 across.
  const NodeId x = net.convolution("conv", net.input(),
                                   {.channels = 7,
                                    .kernel = {.height = 3, .width = 5},
                                    .stride = {.height = 2, .width = 1},
                                    .padding = {.height = 1, .width = 0}});
  EXPECT_EQ(net.shape(x), (Shape{.channels = 7, .height = 4, .width = 2}));
}

// The kernel of 3 with two between its numbers covers 5: (8 + 0 - 5) / 1 + 1 = 4 down; across,
// (6 + 2 - 3) / 2 + 1 = 3.
TEST(Builder, DilationSpreadsAWindow) {
  Builder net{"toy", kWide};
  const NodeId x = net.convolution("conv", net.input(),
                                   {.channels = 6,
                                    .kernel = square(3),
                                    .stride = {.height = 1, .width = 2},
                                    .padding = {.height = 0, .width = 1},
                                    .dilation = {.height = 2, .width = 1},
                                    .groups = 3});
  EXPECT_EQ(net.shape(x), (Shape{.channels = 6, .height = 4, .width = 3}));
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

TEST(Builder, RefusesGroupsThatDoNotDivideTheChannels) {
  EXPECT_EQ(build_refusal([](Builder& net) {
              net.convolution("c", net.input(), {.channels = 4, .groups = 2});
            }),
            "layer c (convolution 1x1, 4 channels, 2 groups) needs a number of groups that divides "
            "its 4 channels and the 3 it reads");
  EXPECT_EQ(build_refusal([](Builder& net) {
              net.transposed_convolution("c", net.input(), {.channels = 3, .groups = 0});
            }),
            "layer c (transposed convolution 1x1, 3 channels, 0 groups) needs a number of groups "
            "that divides its 3 channels and the 3 it reads");
}

TEST(Builder, RefusesATransposedConvolutionThatMakesNothing) {
  EXPECT_EQ(build_refusal([](Builder& net) {
              net.transposed_convolution("up", net.input(), {.channels = 2, .padding = square(3)});
            }),
            "layer up (transposed convolution 1x1, 2 channels, padding 3) cuts off all that it "
            "makes of what it reads, 3x8x6; use less padding");
  EXPECT_EQ(build_refusal([](Builder& net) {
              net.transposed_convolution("up", net.input(),
                                         {.channels = 2, .output_padding = square(1)});
            }),
            "layer up (transposed convolution 1x1, 2 channels, output padding 1) needs an output "
            "padding of less than its stride");
}

TEST(Builder, CropsToAnotherLayersSize) {
  Builder net{"toy", kWide};
  const NodeId half = net.pool("half", net.input(), {});
  EXPECT_EQ(net.shape(net.crop("middle", net.input(), half)),
            (Shape{.channels = 3, .height = 4, .width = 3}));
  // Rows 4 to 7 and columns 3 to 5 are the last.
  EXPECT_EQ(net.shape(net.crop("corner", net.input(), half,
                               {.is_centred = false, .offset = {.height = 4, .width = 3}})),
            (Shape{.channels = 3, .height = 4, .width = 3}));
}

TEST(Builder, RefusesToCropBeyondTheImage) {
  EXPECT_EQ(build_refusal([](Builder& net) {
              const NodeId half = net.pool("half", net.input(), {});
              net.crop("corner", net.input(), half,
                       {.is_centred = false, .offset = {.height = 5, .width = 3}});
            }),
            "layer corner (crop, offset 5x3) finds no window of 3x4x3 in what it reads, 3x8x6");
}

TEST(Builder, PoolingDropsTheRestThatFillsNoWindow) {
  Builder net{"toy", {.channels = 2, .height = 7, .width = 5}};
  EXPECT_EQ(net.shape(net.pool("pool", net.input(), {})),
            (Shape{.channels = 2, .height = 3, .width = 2}));
}

// Seven rows: windows of 3 by 2 end after row 7 (0-2, 2-4, 4-6) and leave no rest. Six: 0-2 and 2-4
// leave row 5, whose window starts at 4.
TEST(Builder, PoolingThatRoundsUpTakesTheRestIn) {
  Builder net{"toy", {.channels = 2, .height = 7, .width = 6}};
  const Pool pool{.kernel = square(3), .stride = square(2), .rounds_up = true};
  EXPECT_EQ(net.shape(net.pool("pool", net.input(), pool)),
            (Shape{.channels = 2, .height = 3, .width = 3}));
}

// Padded by 1, windows of 2 by 3 start at -1, 2 and 5 of the six rows: at 5 one would hold row 5
// and padding. Five rows have no third window: it would start in the padding behind them.
TEST(Builder, PoolingThatRoundsUpStartsNoWindowInThePaddingBehind) {
  Builder net{"toy", {.channels = 2, .height = 6, .width = 5}};
  const Pool pool{
      .kernel = square(2), .stride = square(3), .padding = square(1), .rounds_up = true};
  EXPECT_EQ(net.shape(net.pool("pool", net.input(), pool)),
            (Shape{.channels = 2, .height = 3, .width = 2}));
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

TEST(Builder, RefusesAWindowLargerThanTheImage) {
  EXPECT_EQ(build_refusal([](Builder& net) { net.pool("pool5", net.input(), {}); },
                          {.channels = 512, .height = 1, .width = 1}),
            "layer pool5 (max pool 2x2, stride 2) does not fit what it reads, 512x1x1; use a "
            "larger --image-size");
}

TEST(Builder, RefusesToAddUnequalShapes) {
  EXPECT_EQ(build_refusal([](Builder& net) {
              const NodeId half = net.pool("half", net.input(), {});
              net.sum("sum", net.input(), half);
            }),
            "layer sum (add) adds only equal shapes and reads 3x8x6 and 3x4x3");
}

TEST(Builder, RefusesToJoinImagesOfOtherSizes) {
  EXPECT_EQ(build_refusal([](Builder& net) {
              const NodeId half = net.pool("half", net.input(), {});
              net.concat("all", {net.input(), half});
            }),
            "layer all (concat) joins only images of one height and width and reads 3x8x6 and "
            "3x4x3");
}

TEST(Builder, RefusesALocalResponseNormWithoutAMiddle) {
  EXPECT_EQ(build_refusal(
                [](Builder& net) { net.local_response_norm("norm", net.input(), {.size = 4}); }),
            "layer norm (local response norm over 4 channels) needs an odd number of channels, its "
            "own in the middle");
  EXPECT_EQ(
      build_refusal([](Builder& net) { net.local_response_norm("norm", net.input(), {.k = 0}); }),
      "layer norm (local response norm over 5 channels) needs a k above 0 and an alpha and a "
      "beta of at least 0");
}

TEST(Builder, TakesALossForEachPixel) {
  Builder net{"toy", kWide};
  const Network network = net.build(net.convolution("scores", net.input(), {.channels = 5}));
  EXPECT_EQ(network.classes(), 5U);
  EXPECT_EQ(network.labels(), (Extent{.height = 8, .width = 6}));
}

TEST(Builder, RefusesLossesOfSeveralSizes) {
  EXPECT_EQ(build_refusal([](Builder& net) {
              net.auxiliary_loss("aux", net.pool("half", net.input(), {}), 0.5F);
              [[maybe_unused]] auto network = net.build(net.input());
            }),
            "layer aux (softmax cross-entropy, weight 0.5) reads 3x4x3, but the last loss 3x8x6; "
            "give all losses the same height and width");
}

TEST(Builder, RefusesANameUsedBefore) {
  EXPECT_EQ(build_refusal([](Builder& net) { net.relu("a", net.relu("a", net.input())); }),
            "network toy has two layers named a; give each layer a name of its own");
}

TEST(Builder, RefusesAnEmptyImage) {
  EXPECT_EQ(build_refusal([](Builder&) {}, {.channels = 3, .height = 0, .width = 8}),
            "network toy cannot read images of 3x0x8; channels, height and width must be at least "
            "1");
}

TEST(Builder, RefusesLayersThatMakeNothing) {
  EXPECT_EQ(build_refusal([](Builder& net) { net.linear("fc", net.input(), {.features = 0}); }),
            "layer fc (linear, 0 features) needs at least one feature");
  EXPECT_EQ(build_refusal([](Builder& net) { net.convolution("c", net.input(), {.channels = 0}); }),
            "layer c (convolution 1x1, 0 channels) needs at least one channel");
  EXPECT_EQ(build_refusal([](Builder& net) { net.pool("p", net.input(), {.stride = square(0)}); }),
            "layer p (max pool 2x2, stride 0) needs a kernel and a stride of at least 1");
}

TEST(Builder, RefusesPoolingOfPaddingAlone) {
  EXPECT_EQ(build_refusal([](Builder& net) { net.pool("p", net.input(), {.padding = square(2)}); }),
            "layer p (max pool 2x2, stride 2, padding 2) has windows that lie in the padding "
            "alone; its padding must be less than its kernel");
}

// Windows of 3 by 2, padded by 1, start at -1, 1, ... and end at row 7 of 7 rows with the padding
// behind them; of 6 rows the padding is row 6, and the window from 5 on ends at row 7.
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
  EXPECT_EQ(
      average(6, true),
      "layer p (average pool 3x3, stride 2, padding 1 counted, rounding up) counts the padding "
      "of a last window that reaches beyond it, which frameworks do differently; let it not "
      "count padding, or not round up");
  EXPECT_EQ(average(6, false), "accepted");
  EXPECT_EQ(average(7, true), "accepted");
}

TEST(Builder, SaysHowAPoolCountsAndRounds) {
  EXPECT_EQ(build_refusal([](Builder& net) {
              net.pool("p", net.input(),
                       {.kind = PoolKind::kAverage,
                        .padding = square(2),
                        .counts_padding = true,
                        .rounds_up = true});
            }),
            "layer p (average pool 2x2, stride 2, padding 2 counted, rounding up) has windows that "
            "lie in the padding alone; its padding must be less than its kernel");
}

TEST(Builder, RefusesToDropEverything) {
  EXPECT_EQ(build_refusal([](Builder& net) { net.dropout("d", net.input(), {.probability = 1}); }),
            "layer d (dropout) needs a probability of at least 0 and less than 1");
}

TEST(Builder, TakesAnInputFromElsewhereForABug) {
  Builder net{"toy", kWide};
  EXPECT_THROW(net.relu("relu", NodeId{7}), um::ContractError);
  EXPECT_THROW(net.add("sum", Add{}, {net.input()}), um::ContractError);
  EXPECT_THROW(net.add("all", Concat{}, {net.input()}), um::ContractError);
  EXPECT_THROW(net.add("drop", Dropout{}, {net.input(), net.input()}), um::ContractError);
}

}  // namespace
}  // namespace spillway::nets
