#include "src/bench/paging/touch_pattern.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace spillway {
namespace {

using Order = std::vector<std::size_t>;

TEST(TouchPattern, StreamsForthAndBack) {
  EXPECT_EQ(touch_order(TouchPattern::kStream, 4), (Order{0, 1, 2, 3}));
  EXPECT_EQ(touch_order(TouchPattern::kReverse, 4), (Order{3, 2, 1, 0}));
}

TEST(TouchPattern, StridesByEightOverAllPages) {
  EXPECT_EQ(touch_order(TouchPattern::kStride, 18),
            (Order{0, 8, 16, 1, 9, 17, 2, 10, 3, 11, 4, 12, 5, 13, 6, 14, 7, 15}));
}

TEST(TouchPattern, DrawsTheSamePagesEachTime) {
  const Order order = touch_order(TouchPattern::kRandom, 100);

  EXPECT_EQ(order.size(), 100U);
  EXPECT_LT(*std::ranges::max_element(order), 100U);
  EXPECT_EQ(order, touch_order(TouchPattern::kRandom, 100));
  EXPECT_FALSE(std::ranges::is_sorted(order));
}

TEST(TouchPattern, HasTheNameThatBenchFilesGiveIt) {
  EXPECT_EQ(to_string(TouchPattern::kStream), "stream");
  EXPECT_EQ(to_string(TouchPattern::kStride), "stride");
  EXPECT_EQ(to_string(TouchPattern::kReverse), "reverse");
  EXPECT_EQ(to_string(TouchPattern::kRandom), "random");
}

TEST(TouchPattern, IsFoundByTheNameThatIsWritten) {
  for (const char* name : {"stream", "stride", "reverse", "random"}) {
    EXPECT_EQ(to_string(find_pattern(name).value()), name);
  }
  EXPECT_FALSE(find_pattern("zigzag"));
}

}  // namespace
}  // namespace spillway
