#include "src/ops/precision.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace spillway {
namespace {

float rounded(float value) { return Bfloat16{value}; }

TEST(Bfloat16, KeepsWhatItCanHold) {
  for (const float value : {0.F, -0.F, 1.F, -1.5F, 0x1.FEp127F, 0x1p-126F, 0x1p-133F}) {
    EXPECT_EQ(std::bit_cast<std::uint32_t>(rounded(value)), std::bit_cast<std::uint32_t>(value));
  }
}

// Seven bits behind the point: neighbours of 1 are 2^-7 apart above it, 2^-8 below.
TEST(Bfloat16, RoundsToTheNearestAndHalfwayToTheEven) {
  EXPECT_EQ(rounded(1 + 0x1p-8F), 1.F);
  EXPECT_EQ(rounded(1 + 3 * 0x1p-8F), 1 + 0x1p-6F);
  EXPECT_EQ(rounded(1 + 0x1p-8F + 0x1p-20F), 1 + 0x1p-7F);
  EXPECT_EQ(rounded(-1 - 0x1p-9F), -1.F);
  EXPECT_EQ(rounded(std::numeric_limits<float>::max()), std::numeric_limits<float>::infinity());
}

TEST(Bfloat16, KeepsInfinitiesAndNans) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  EXPECT_EQ(rounded(-kInfinity), -kInfinity);
  EXPECT_TRUE(std::isnan(rounded(std::numeric_limits<float>::quiet_NaN())));
  EXPECT_TRUE(
      std::isnan(rounded(std::bit_cast<float>(0x7F800001U))));  // its upper half is infinity
}

}  // namespace
}  // namespace spillway
