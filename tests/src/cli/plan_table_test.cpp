// What `spillway plan` prints for people.
#include <gtest/gtest.h>

#include <string>

#include "tests/src/cli/program.h"

namespace spillway::test {
namespace {

std::string line_with(const std::string& output, const std::string& words) {
  const std::size_t at = output.find(words);
  if (at == std::string::npos) return "no '" + words + "' in: " + output;
  return output.substr(at, output.find('\n', at) - at);
}

// LeNet's step takes microseconds on a V100, VGG-16's at batch 256 more than a second.
TEST(PlanTable, GivesTimesInUnitsThatSuitThem) {
  const Outcome small = run_spillway(
      {"plan", "--net", "lenet", "--batch", "64", "--machine", "v100", "--budget", "min"});
  EXPECT_EQ(small.exit_code, 0) << small.errors;
  const std::string step = line_with(small.output, "step  ");
  EXPECT_NE(step.find(" us, of it arithmetic "), std::string::npos) << step;
  EXPECT_EQ(small.output.find(" 0.00"), std::string::npos) << small.output;
  const Outcome large = run_spillway({"plan", "--net", "vgg16", "--batch", "256", "--machine",
                                      "v100", "--budget", "100%", "--planner", "resident"});
  EXPECT_EQ(large.exit_code, 0) << large.errors;
  const std::string bound = line_with(large.output, "no plan below ");
  EXPECT_NE(bound.find(" s (moving alone "), std::string::npos) << bound;
  EXPECT_TRUE(bound.ends_with(" s)")) << bound;
}

}  // namespace
}  // namespace spillway::test
