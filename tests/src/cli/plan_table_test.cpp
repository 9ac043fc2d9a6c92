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
  const Outcome small = succeed("plan --net lenet --batch 64 --machine v100 --budget min");
  const std::string step = line_with(small.output, "step  ");
  expect_parts(step, {" us, of it arithmetic "});
  EXPECT_EQ(small.output.find(" 0.00"), std::string::npos) << small.output;
  const Outcome large =
      succeed("plan --net vgg16 --batch 256 --machine v100 --budget 100% --planner resident");
  const std::string bound = line_with(large.output, "no plan below ");
  expect_parts(bound, {" s (moving alone "});
  EXPECT_TRUE(bound.ends_with(" s)")) << bound;
}

}  // namespace
}  // namespace spillway::test
