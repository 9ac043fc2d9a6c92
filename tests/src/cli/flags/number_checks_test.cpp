#include "src/cli/flags/number_checks.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace spillway::cli {
namespace {

struct Row {
  std::string text;
  std::string complaint;  // empty: none
};

template <class Number>
void expect_complaints(const SettingRange<Number>& range, const std::vector<Row>& rows) {
  for (const Row& row : rows) EXPECT_EQ(within(range)(row.text), row.complaint) << row.text;
}

TEST(NumberChecks, TakeWhatIsInTheRange) {
  expect_complaints(kLearningRateRange, {{"0", ""},
                                         {"3e38", ""},
                                         {"-1", "-1 is below 0"},
                                         {"1e39", "'1e39' is no number from 0 up"},
                                         {"nan", "'nan' is no number from 0 up"},
                                         {"inf", "'inf' is no number from 0 up"},
                                         {"1x", "'1x' is no number from 0 up"},
                                         {"", "'' is no number from 0 up"}});
  expect_complaints(
      kEpsilonRange,
      {{"1e-8", ""}, {"0", "0 is not above 0"}, {"1e-60", "'1e-60' is no number above 0"}});
  expect_complaints(kHueRange, {{"0.5", ""}, {"0.51", "0.51 is above 0.5"}});
  expect_complaints(kEvalCropRange, {{"1", ""}, {"1.5", "1.5 is above 1"}});
}

// The largest float below 1 is 0.99999994; what lies between it and 1 is 1 for a float.
TEST(NumberChecks, TellAFloatBelowOneFromOne) {
  const std::string rounded = " is not below 1: it is so close that it is rounded to 1";
  for (const std::string text : {"0.99999999", ".99999999", "9.9999999e-1"}) {
    expect_complaints(kDropoutRange, {{text, text + rounded}});
    expect_complaints(kBetaRange, {{text, ""}});
  }
  expect_complaints(kDropoutRange, {{"0.99999994", ""},
                                    {"1", "1 is not below 1"},
                                    {"1.0", "1.0 is not below 1"},
                                    {"1.5", "1.5 is not below 1"},
                                    {"-1", "-1 is below 0"},
                                    {"half", "'half' is no number from 0 up to below 1"}});
  const std::string close = "0.9999999999999999999";
  expect_complaints(kBetaRange, {{"1", "1 is not below 1"}, {close, close + rounded}});
}

}  // namespace
}  // namespace spillway::cli
