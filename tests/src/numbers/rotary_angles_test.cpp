#include "src/numbers/rotary_angles.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstddef>

namespace spillway {
namespace {

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
