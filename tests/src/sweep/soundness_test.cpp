#include "src/sweep/soundness.h"

#include <gtest/gtest.h>

#include <array>
#include <string>

namespace spillway {
namespace {

Point point_of(const std::string& planner, const std::string& violation) {
  Point point;
  point.key = {.net = "lenet", .batch = 64, .machine = "k40m", .budget = um::Bytes{1000}};
  point.key.planner = planner;
  point.outcome = PlanOutcome{.violation = violation};
  return point;
}

TEST(ExpectSound, NamesThePlannerAndTheViolationOfTheFirstUnsoundPlan) {
  const std::array points{point_of("joint", ""), point_of("modnn", "run 3 reads what is far"),
                          point_of("capacity", "too much")};
  try {
    expect_sound(points);
    ADD_FAILURE() << "nothing was thrown";
  } catch (const um::Error& error) {
    EXPECT_STREQ(error.what(),
                 "the plan of planner modnn for lenet at batch 64 on k40m within 1000 bytes does "
                 "not verify: run 3 reads what is far");
  }
}

TEST(ExpectSound, SaysNothingOfPlansThatVerifyOrAreNotThere) {
  std::array points{point_of("joint", ""), point_of("resident", "")};
  points[1].outcome.reset();
  EXPECT_NO_THROW(expect_sound(points));
}

}  // namespace
}  // namespace spillway
