#include "src/bench/warm_up.h"

#include <gtest/gtest.h>

namespace spillway {
namespace {

TEST(WarmUp, EndsWhenAStepIsHardlyShorterThanTheOneBeforeIt) {
  EXPECT_FALSE(is_warm(2, Seconds{1}, Seconds{0.979}));
  EXPECT_TRUE(is_warm(2, Seconds{1}, Seconds{0.981}));
  EXPECT_TRUE(is_warm(3, Seconds{1}, Seconds{1.5}));
}

TEST(WarmUp, TakesTwoStepsAtLeastAndFiveAtMost) {
  EXPECT_FALSE(is_warm(1, Seconds{1}, Seconds{1}));
  EXPECT_FALSE(is_warm(4, Seconds{1}, Seconds{0.5}));
  EXPECT_TRUE(is_warm(5, Seconds{1}, Seconds{0.5}));
}

}  // namespace
}  // namespace spillway
