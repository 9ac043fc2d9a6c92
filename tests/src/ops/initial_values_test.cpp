#include "src/ops/initial_values.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <span>

namespace spillway {
namespace {

struct Moments {
  double mean = 0;
  double variance = 0;
};

Moments moments(std::span<const float> values) {
  Moments result;
  for (const float value : values) result.mean += static_cast<double>(value);
  result.mean /= static_cast<double>(values.size());
  for (const float value : values) {
    result.variance += std::pow(static_cast<double>(value) - result.mean, 2);
  }
  result.variance /= static_cast<double>(values.size());
  return result;
}

// 64 * 32 * 9 = 18432 weights of fan-in 288: variance 2 / 288. The mean of n draws is within 4
// standard deviations / sqrt(n), their variance within 4 sqrt(2 / n) of itself.
TEST(InitialValues, OfAConvolutionAreNormalByHe) {
  const auto values = initial_values(ConvolutionParameters{64, 32, nets::square(3), true}, 1, 0);
  ASSERT_EQ(values.size(), 18432U + 64U);
  const Moments found = moments(std::span{values}.first(18432));
  const double variance = 2.0 / 288;
  EXPECT_NEAR(found.mean, 0, 4 * std::sqrt(variance / 18432));
  EXPECT_NEAR(found.variance, variance, 4 * std::sqrt(2.0 / 18432) * variance);
  const double deviation = std::sqrt(variance);
  const auto beyond = std::ranges::count_if(
      values, [&](float value) { return std::abs(static_cast<double>(value)) > 2 * deviation; });
  EXPECT_NEAR(static_cast<double>(beyond) / 18432, 0.0455, 0.007);  // normal: 4.55 % beyond 2
  EXPECT_TRUE(std::all_of(values.end() - 64, values.end(), [](float b) { return b == 0; }));
}

// 300 * 100 weights within sqrt(6 / 400) = 0.1225, of variance bound^2 / 3.
TEST(InitialValues, OfALinearLayerAreUniformByXavier) {
  const auto values = initial_values(LinearParameters{100, {300, 1, 1}, true}, 1, 0);
  ASSERT_EQ(values.size(), 30100U);
  const double bound = std::sqrt(6.0 / 400);
  const auto weights = std::span{values}.first(30000);
  EXPECT_LE(static_cast<double>(*std::ranges::max_element(weights)), bound);
  EXPECT_GT(static_cast<double>(*std::ranges::max_element(weights)), 0.99 * bound);
  EXPECT_LT(static_cast<double>(*std::ranges::min_element(weights)), -0.99 * bound);
  const Moments found = moments(weights);
  EXPECT_NEAR(found.mean, 0, 4 * bound / std::sqrt(3.0 * 30000));
  EXPECT_NEAR(found.variance, bound * bound / 3, 0.02 * bound * bound);
  EXPECT_TRUE(std::all_of(values.end() - 100, values.end(), [](float b) { return b == 0; }));
}

// Fan-out of 64 * 9: variance 2 / 576. Linear weights have a deviation of 0.01.
TEST(InitialValues, ByTorchvisionsRuleKnowTheFanOut) {
  const auto rule = Initialisation::kTorchvision;
  const auto convolution =
      initial_values(ConvolutionParameters{64, 32, nets::square(3), true}, 1, 0, rule);
  EXPECT_NEAR(moments(std::span{convolution}.first(18432)).variance, 2.0 / 576, 0.05 * 2 / 576);
  const auto linear = initial_values(LinearParameters{100, {300, 1, 1}, true}, 1, 0, rule);
  EXPECT_NEAR(moments(std::span{linear}.first(30000)).variance, 1e-4, 0.05 * 1e-4);
  EXPECT_EQ(linear.back(), 0.F);
}

// Within 1 / sqrt(300), biases too: variance 1 / 900.
TEST(InitialValues, ByPytorchsRuleAreUniformBiasesToo) {
  const auto values =
      initial_values(LinearParameters{100, {300, 1, 1}, true}, 1, 0, Initialisation::kPytorch);
  EXPECT_NEAR(moments(values).variance, 1.0 / 900, 0.02 / 900);
  EXPECT_LE(static_cast<double>(*std::ranges::max_element(values)), 1 / std::sqrt(300.0));
  EXPECT_NE(values.back(), 0.F);
}

// ResNet: convolutions by fan-out, 2 / 576; linear layers with biases within 1 / sqrt(300).
// DenseNet: convolutions by fan-in, 2 / 288; biases 0.
TEST(InitialValues, ByTheRulesOfTorchvisionsOtherNetworks) {
  const ConvolutionParameters convolution{64, 32, nets::square(3), false};
  const LinearParameters linear{100, {300, 1, 1}, true};
  const auto drawn = [](const ParameterSpec& spec, const std::string& name) {
    return initial_values(spec, 1, 0, find_initialisation(name).value());
  };
  EXPECT_NEAR(moments(drawn(convolution, "torchvision-resnet")).variance, 2.0 / 576, 0.1 / 576);
  EXPECT_NEAR(moments(drawn(convolution, "torchvision-densenet")).variance, 2.0 / 288, 0.1 / 288);
  EXPECT_EQ(drawn(linear, "torchvision-resnet"), drawn(linear, "pytorch"));
  const auto of_densenet = drawn(linear, "torchvision-densenet");
  EXPECT_NEAR(moments(std::span{of_densenet}.first(30000)).variance, 1.0 / 900, 0.02 / 900);
  EXPECT_EQ(of_densenet.back(), 0.F);
  EXPECT_FALSE(find_initialisation("torchvision-vit"));
}

TEST(InitialValues, AreByTheRuleThatSuitsTheNetwork) {
  EXPECT_EQ(usual_initialisation("vgg16"), Initialisation::kTorchvision);
  EXPECT_EQ(usual_initialisation("resnet:6,32,100,6"), Initialisation::kTorchvision);
  EXPECT_EQ(usual_initialisation("lenet"), Initialisation::kXavier);
  EXPECT_EQ(usual_initialisation("./my.net"), Initialisation::kXavier);
}

// Doubling with a kernel of 4: between two pixels lie 3/4 of the one and 1/4 of the other. Each
// channel goes to its own alone.
TEST(InitialValues, OfATransposedConvolutionInterpolate) {
  const auto values = initial_values(TransposedConvolutionParameters{2, 2, {1, 4}, true}, 1, 0);
  EXPECT_EQ(values, (std::vector<float>{0.25F, 0.75F, 0.75F, 0.25F, 0, 0, 0, 0,  // from channel 0
                                        0, 0, 0, 0, 0.25F, 0.75F, 0.75F, 0.25F,  // from channel 1
                                        0, 0}));
  const auto depthwise =
      initial_values(TransposedConvolutionParameters{2, 2, {3, 1}, false, 2}, 1, 0);
  EXPECT_EQ(depthwise, (std::vector<float>{0.5F, 1, 0.5F, 0.5F, 1, 0.5F}));
}

// 16 * 64 * 9 weights of fan-in 16 * 9.
TEST(InitialValues, OfATransposedConvolutionToOtherChannelsAreNormalByHe) {
  const auto values =
      initial_values(TransposedConvolutionParameters{16, 64, nets::square(3), false}, 1, 0);
  ASSERT_EQ(values.size(), 9216U);
  const double variance = 2.0 / 144;
  EXPECT_NEAR(moments(values).variance, variance, 4 * std::sqrt(2.0 / 9216) * variance);
}

TEST(InitialValues, OfBatchNormAreTheIdentity) {
  EXPECT_EQ(initial_values(BatchNormParameters{2}, 1, 0), (std::vector<float>{1, 1, 0, 0}));
  EXPECT_EQ(initial_values(BatchNormStatistics{2}, 1, 0), (std::vector<float>{0, 0, 1, 1}));
}

TEST(InitialValues, DependOnSeedAndIndexAlone) {
  const LinearParameters spec{10, {10, 1, 1}, false};
  EXPECT_EQ(initial_values(spec, 1, 2), initial_values(spec, 1, 2));
  EXPECT_NE(initial_values(spec, 1, 2), initial_values(spec, 1, 3));
  EXPECT_NE(initial_values(spec, 1, 2), initial_values(spec, 2, 2));
  EXPECT_NE(initial_values(spec, 1, 2), initial_values(spec, 1 + (1ULL << 32U), 2));
}

}  // namespace
}  // namespace spillway
