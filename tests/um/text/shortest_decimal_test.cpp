#include <gtest/gtest.h>

#include <limits>

#include "um/text/wording.h"

namespace spillway::um {
namespace {

TEST(ShortestDecimal, IsWhatPeopleWrite) {
  EXPECT_EQ(shortest_decimal(0.01F), 0.01);
  EXPECT_EQ(shortest_decimal(0.1F), 0.1);
  EXPECT_EQ(shortest_decimal(5e-4F), 5e-4);
  EXPECT_EQ(shortest_decimal(0), 0);
  EXPECT_NE(shortest_decimal(0.01F), static_cast<double>(0.01F));
}

TEST(ShortestDecimal, IsTheSameFloat) {
  for (const float value : {0.01F, 1.0F / 3, 16777217.0F, 1e-45F, -2.5e-7F,
                            std::numeric_limits<float>::max(), std::numeric_limits<float>::min()}) {
    EXPECT_EQ(static_cast<float>(shortest_decimal(value)), value);
  }
}

}  // namespace
}  // namespace spillway::um
