#include <gtest/gtest.h>

#include <cstdlib>
#include <string>

#include "src/profile/profiler.h"
#include "tests/refusal.h"

namespace spillway {
namespace {

using std::chrono::nanoseconds;

// Restores the environment variable afterwards.
class MeasuringTime : public testing::Test {
 protected:
  MeasuringTime() {
    if (const char* const text = std::getenv(kVariable)) before_ = text;
    unsetenv(kVariable);
  }
  ~MeasuringTime() override { set(before_); }
  static void set(const std::string& text) { setenv(kVariable, text.c_str(), 1); }

 private:
  static constexpr const char* kVariable = "SPILLWAY_MEASURING_TIME";
  std::string before_ = "1";
};

TEST_F(MeasuringTime, IsTheUsualTimesAFactorOfTheEnvironment) {
  EXPECT_EQ(measuring_time(nanoseconds{8}), nanoseconds{8});
  set("0.25");
  EXPECT_EQ(measuring_time(nanoseconds{8}), nanoseconds{2});
  set("1");
  EXPECT_EQ(measuring_time(nanoseconds{8}), nanoseconds{8});
}

TEST_F(MeasuringTime, RefusesWhatIsNoSuchFactor) {
  for (const char* text : {"", "0", "-0.1", "1.5", "0.1s", "nan", "short"}) {
    set(text);
    EXPECT_EQ(
        test::refusal([] { return measuring_time(nanoseconds{8}); }),
        std::string{"SPILLWAY_MEASURING_TIME="} + text + " is no factor over 0 and at most 1");
  }
}

}  // namespace
}  // namespace spillway
