#include <gtest/gtest.h>

#include "um/threads/back_off.h"

namespace spillway::um {
namespace {

using Clock = std::chrono::steady_clock;

TEST(SleepUntil, NeverReturnsEarly) {
  for (int i = 1; i <= 20; ++i) {
    const auto end = Clock::now() + std::chrono::microseconds{50 * i};
    sleep_until(end);
    ASSERT_GE(Clock::now(), end);
  }
}

TEST(SleepUntil, ReturnsWhenTheTimeHasPassed) {
  sleep_until(Clock::time_point{});  // would else never end
  sleep_until(Clock::now() - std::chrono::seconds{1});
}

}  // namespace
}  // namespace spillway::um
