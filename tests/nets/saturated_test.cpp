#include <gtest/gtest.h>

#include "nets/shape.h"

namespace spillway::nets {
namespace {

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

}  // namespace
}  // namespace spillway::nets
