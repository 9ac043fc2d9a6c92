#include "src/step/batch_norm_values.h"

#include <gtest/gtest.h>

#include "nets/builder.h"
#include "tests/refusal.h"

namespace spillway {
namespace {

using prefetch::SubBatches;

/// A batch norm of images of 4x4, then one of 1x1.
nets::Network network() {
  nets::Builder builder{"small", {3, 4, 4}};
  nets::NodeId x = builder.convolution("conv", builder.input(), {.channels = 4});
  x = builder.batch_norm("bn1", x);
  x = builder.convolution("last", x, {.channels = 4, .kernel = nets::square(4)});
  x = builder.batch_norm("bn2", x);
  return builder.build(builder.linear("fc", x, {.features = 5}));
}

std::string refusal(std::size_t batch, const SubBatches& batches) {
  return test::refusal([&] { return expect_values_to_normalize(network(), batch, batches), 0; });
}

TEST(BatchNormValues, OfOneImageAreRefusedWhereTheImageIsOneNumber) {
  EXPECT_EQ(norm_of_one_value(network(), 1), "bn2");
  EXPECT_EQ(norm_of_one_value(network(), 2), std::nullopt);
  EXPECT_EQ(refusal(1, {.size = 1, .steps = 1}),
            "layer bn2 (batch-norm) gets one value per channel and would make zeros of it; train "
            "with a larger batch or larger images");
  EXPECT_EQ(refusal(4, {.size = 1, .steps = 4}),
            "layer bn2 (batch-norm) gets one value per channel and would make zeros of it; train "
            "with a larger sub-batch or larger images");
  EXPECT_EQ(refusal(2, {.size = 2, .steps = 1}), "accepted");
}

TEST(BatchNormValues, OfALastSubBatchOfOneImageAreWorthAWarning) {
  EXPECT_EQ(refusal(5, {.size = 2, .steps = 3}), "accepted");
  EXPECT_EQ(last_norm_of_one_value(network(), 5, {.size = 2, .steps = 3}), "bn2");
  EXPECT_EQ(last_norm_of_one_value(network(), 6, {.size = 2, .steps = 3}), std::nullopt);
  EXPECT_EQ(last_norm_of_one_value(network(), 2, {.size = 2, .steps = 1}), std::nullopt);
}

TEST(BatchNormValues, MayBeOneWhereNothingIsNormalizedByIt) {
  nets::Builder builder{"plain", {3, 1, 1}};
  const nets::Network plain = builder.build(builder.linear("fc", builder.input(), {.features = 5}));
  EXPECT_EQ(norm_of_one_value(plain, 1), std::nullopt);
}

}  // namespace
}  // namespace spillway
