#include "src/ops/narrow_floats.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>

#include "src/ops/rotary_angles.h"

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

TEST(NarrowFloats, AreThoseOfTheirDefinitions) {
  EXPECT_EQ(float_of_half(0x0001), 0x1p-24F);
  EXPECT_EQ(float_of_half(0x03ff), 1023 * 0x1p-24F);
  EXPECT_EQ(float_of_half(0x0400), 0x1p-14F);
  EXPECT_EQ(float_of_half(0xc000), -2);
  EXPECT_EQ(float_of_half(0x7bff), 65504);
  EXPECT_TRUE(std::signbit(float_of_half(0x8000)));
  EXPECT_EQ(float_of_half(0xfc00), -std::numeric_limits<float>::infinity());
  EXPECT_TRUE(std::isnan(float_of_half(0x7e00)));
  EXPECT_EQ(float{Bfloat16::from_bits(0xbf80)}, -1);
}

// With base 16, the second of two pairs turns by a quarter of what the first one does.
TEST(RotaryAngles, GrowWithTheTokenAndShrinkWithThePair) {
  const RotaryAngles angles{3, 2, 16};
  ASSERT_EQ(angles.cosines.size(), 6U);
  ASSERT_EQ(angles.sines.size(), 6U);
  for (const std::size_t t : {0U, 1U, 2U}) {
    const auto token = static_cast<double>(t);
    EXPECT_FLOAT_EQ(angles.cosines[2 * t], static_cast<float>(std::cos(token)));
    EXPECT_FLOAT_EQ(angles.sines[2 * t], static_cast<float>(std::sin(token)));
    EXPECT_FLOAT_EQ(angles.cosines[2 * t + 1], static_cast<float>(std::cos(token / 4)));
    EXPECT_FLOAT_EQ(angles.sines[2 * t + 1], static_cast<float>(std::sin(token / 4)));
  }
}

}  // namespace
}  // namespace spillway
