#include "tools/gpu/spread.h"

#include <gtest/gtest.h>

namespace spillway::gpu {
namespace {

TEST(Spread, TakesTheMiddleOfAnOddNumberOfValues) {
  const Spread spread = spread_of({5, 1, 9});
  EXPECT_EQ(spread.median, 5);
  EXPECT_EQ(spread.min, 1);
  EXPECT_EQ(spread.max, 9);
  EXPECT_EQ(spread.count, 3U);
}

TEST(Spread, TakesTheMeanOfTheMiddleTwoOfAnEvenNumber) {
  EXPECT_EQ(spread_of({8, 1, 2, 4}).median, 3);
}

TEST(Spread, IsWrittenByName) {
  EXPECT_EQ(to_json(spread_of({2, 4})).dump(),
            R"({"count":2,"least":2.0,"median":3.0,"most":4.0})");
}

}  // namespace
}  // namespace spillway::gpu
