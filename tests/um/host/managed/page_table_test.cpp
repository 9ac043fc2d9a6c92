#include "um/host/managed/page_table.h"

#include <gtest/gtest.h>

#include <set>
#include <vector>

#include "um/error.h"
#include "um/host/managed/page.h"

namespace spillway::um {
namespace {

/// Four pages of 4096 bytes.
class PageGridTest : public testing::Test {
 protected:
  [[nodiscard]] Range range(std::size_t begin, std::size_t end) {
    return Range{memory}.subspan(begin, end - begin);
  }
  static void expect_span(PageSpan span, PageIndex begin, PageIndex end) {
    EXPECT_EQ(span.begin, begin);
    EXPECT_EQ(span.end, end);
  }

  std::vector<std::byte> memory = std::vector<std::byte>(16'384);
  PageGrid grid{memory, 4_KiB};
};

TEST_F(PageGridTest, TouchesEveryPageOfWhichARangeHasAByte) {
  expect_span(grid.touched(range(0, 4096)), 0, 1);
  expect_span(grid.touched(range(4095, 4097)), 0, 2);
  expect_span(grid.touched(range(5000, 5001)), 1, 2);
  expect_span(grid.touched(range(0, 16'384)), 0, 4);
}

TEST_F(PageGridTest, CoversOnlyWholePages) {
  expect_span(grid.covered(range(4096, 8192)), 1, 2);
  expect_span(grid.covered(range(1, 12'287)), 1, 2);
  const PageSpan none = grid.covered(range(5000, 5001));
  EXPECT_EQ(none.begin, none.end);
}

TEST_F(PageGridTest, HasNoPagesForNoBytes) {
  expect_span(grid.touched({}), 0, 0);
  expect_span(grid.whole({}), 0, 0);
}

TEST_F(PageGridTest, RefusesPartsOfPagesAndForeignAddresses) {
  EXPECT_THROW(static_cast<void>(grid.whole(range(0, 5000))), ContractError);
  EXPECT_THROW(static_cast<void>(grid.whole(range(1, 4096))), ContractError);
  std::vector<std::byte> foreign(4096);
  EXPECT_THROW(static_cast<void>(grid.touched(foreign)), ContractError);
}

TEST_F(PageGridTest, OnlyAWholePageIsOverwritten) {
  const Use use{.range = range(0, 6000), .access = Access::kWrite};
  EXPECT_TRUE(PageAccess::of(use, grid, 0).overwrites);
  EXPECT_TRUE(PageAccess::of(use, grid, 1).writes);
  EXPECT_FALSE(PageAccess::of(use, grid, 1).overwrites);
}

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

TEST(NearPool, GivesEachSlotOnceAndChargesIt) {
  Ledger ledger{1_MiB};
  NearPool pool{3, 64_KiB, ledger};
  std::set<SlotIndex> taken;
  for (int i = 0; i < 3; ++i) taken.insert(pool.take().value());
  EXPECT_EQ(taken, (std::set<SlotIndex>{0, 1, 2}));
  EXPECT_EQ(pool.take(), std::nullopt);
  EXPECT_EQ(ledger.in_use(), 192_KiB);
}

TEST(NearPool, SaysNoWhenTheLedgerIsFull) {
  Ledger ledger{128_KiB};
  NearPool pool{3, 64_KiB, ledger};
  ledger.charge(64_KiB);  // by another user of the ledger
  const auto slot = pool.take();
  ASSERT_TRUE(slot);
  EXPECT_EQ(pool.take(), std::nullopt);
  pool.give(*slot);
  EXPECT_EQ(ledger.in_use(), 64_KiB);
  EXPECT_TRUE(pool.take());
}

TEST(NearPool, ChargesNothingForWhatIsSetAside) {
  Ledger ledger{128_KiB};
  NearPool pool{2, 64_KiB, ledger};
  const SlotIndex kept = pool.take().value();
  pool.set_aside();
  EXPECT_EQ(ledger.in_use(), Bytes{});
  EXPECT_NE(pool.take().value(), kept);
  EXPECT_EQ(pool.take(), std::nullopt);  // the other one is set aside
  ledger.charge(64_KiB);                 // by another user of the ledger
  EXPECT_FALSE(pool.take_back());
  ledger.release(64_KiB);
  EXPECT_TRUE(pool.take_back());
  pool.set_aside();
  pool.give_aside(kept);
  EXPECT_EQ(pool.take(), kept);
}

TEST(NearPool, ReleasesWhatIsTakenWhenItEnds) {
  Ledger ledger{1_MiB};
  {
    NearPool pool{3, 64_KiB, ledger};
    ASSERT_TRUE(pool.take());
    ASSERT_TRUE(pool.take());
    pool.set_aside();  // and was released then
  }
  EXPECT_EQ(ledger.in_use(), Bytes{});
}

}  // namespace
}  // namespace spillway::um
