#include <gtest/gtest.h>

#include <set>

#include "um/host/managed/page_table.h"

namespace spillway::um {
namespace {

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
  ledger.charge(64_KiB);  // by somebody else
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
  EXPECT_EQ(pool.take(), std::nullopt);  // the other is aside
  ledger.charge(64_KiB);                 // by somebody else
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
  }
  EXPECT_EQ(ledger.in_use(), Bytes{});
}

}  // namespace
}  // namespace spillway::um
