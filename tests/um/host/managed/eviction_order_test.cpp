#include <gtest/gtest.h>

#include "um/host/managed/page_table.h"

namespace spillway::um {
namespace {

TEST(EvictionOrder, StartsEmpty) { EXPECT_EQ(EvictionOrder{4}.first(), std::nullopt); }

TEST(EvictionOrder, GivesTheOldestFirst) {
  EvictionOrder order{4};
  for (const PageIndex page : {2U, 0U, 3U}) order.append(page, Advice::kNone);
  EXPECT_EQ(order.first(), 2U);
  order.remove(2);
  EXPECT_EQ(order.first(), 0U);
}

TEST(EvictionOrder, APageLeavesFromTheMiddle) {
  EvictionOrder order{4};
  for (const PageIndex page : {2U, 0U, 3U}) order.append(page, Advice::kReadMostly);
  order.remove(0);
  order.remove(2);
  EXPECT_EQ(order.first(), 3U);
  order.remove(3);
  EXPECT_EQ(order.first(), std::nullopt);
}

TEST(EvictionOrder, AdviceGoesBeforeAge) {
  EvictionOrder order{3};
  order.append(0, Advice::kPreferNear);
  order.append(1, Advice::kNone);
  order.append(2, Advice::kPreferFar);
  for (const PageIndex page : {2U, 1U, 0U}) {
    EXPECT_EQ(order.first(), page);
    order.remove(page);
  }
}

}  // namespace
}  // namespace spillway::um
