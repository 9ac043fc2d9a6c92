#pragma once

#include <gtest/gtest.h>

#include <cstring>

#include "tests/um/managed_space_fixture.h"

// The contract of managed memory: what touches and declared uses do.

namespace spillway::um {

TEST_P(ManagedSpaceContract, FirstTouchIsZeroAndAFault) {
  make(options(4, 2));
  EXPECT_EQ(space->word(3), 0U);
  EXPECT_EQ(space->last_word(3), 0U);
  EXPECT_EQ(space->counters().faults, 1U);  // the second word is in the same page
  EXPECT_EQ(space->counters().bytes_prefetched, Bytes{});
  EXPECT_EQ(space->pages_in_use(), 1U);
}

TEST_P(ManagedSpaceContract, ContentSurvivesEviction) {
  make(options(8, 3));
  for (std::size_t page = 0; page < 8;
       ++page) {  // written outside a declared use: dirty all the same
    space->word(page) = 100 + page;
    space->last_word(page) = 200 + page;
  }
  for (std::size_t page = 0; page < 8; ++page) {
    EXPECT_EQ(space->word(page), 100 + page);
    EXPECT_EQ(space->last_word(page), 200 + page);
  }
  // 8 + 8 faults fill 16 times; 3 fit before the first eviction.
  EXPECT_EQ(space->counters().evictions, 13U);
  EXPECT_EQ(space->ledger().peak(), 3 * space->page());
}

// More pages than an engine has on their way at once.
TEST_P(ManagedSpaceContract, AHintOfManyPagesMovesEachWithItsContent) {
  constexpr std::size_t kPages = 100;
  make(options(kPages, kPages));
  for (std::size_t page = 0; page < kPages; ++page) space->write(page, 1000 + page);
  for (int round = 0; round < 2; ++round) {
    EXPECT_EQ(space->move(0, kPages, MemoryTier::kFar), nullptr);
    EXPECT_EQ(space->pages_in_use(), 0U);
    EXPECT_EQ(space->move(0, kPages, MemoryTier::kNear), nullptr);
    EXPECT_EQ(space->pages_in_use(), kPages);
  }
  const std::uint64_t faults = space->counters().faults;
  for (std::size_t page = 0; page < kPages; ++page) EXPECT_EQ(space->word(page), 1000 + page);
  EXPECT_EQ(space->counters().faults, faults);
}

TEST_P(ManagedSpaceContract, TheLedgerMayBeTighterThanNearMemory) {
  ManagedOptions wanted = options(8, 6);
  space.emplace(wanted, 2 * wanted.page);
  for (std::size_t page = 0; page < 8; ++page) space->word(page) = page;
  EXPECT_EQ(space->ledger().peak(), 2 * space->page());
  for (std::size_t page = 0; page < 8; ++page) EXPECT_EQ(space->word(page), page);
}

TEST_P(ManagedSpaceContract, EvictsThePageUsedLongestAgo) {
  make(options(4, 3));
  for (std::size_t page = 0; page < 3; ++page) space->write(page, page);
  space->use(0, 1, Access::kRead, [&] {});  // now page 1 is the oldest
  space->write(3, 3);
  const std::uint64_t before = space->counters().faults;
  EXPECT_EQ(space->word(0), 0U);
  EXPECT_EQ(space->word(2), 2U);
  EXPECT_EQ(space->counters().faults, before);
  EXPECT_EQ(space->word(1), 1U);
  EXPECT_EQ(space->counters().faults, before + 1);
}

TEST_P(ManagedSpaceContract, AdviceDecidesWhoIsEvictedFirst) {
  make(options(4, 3));
  for (std::size_t page = 0; page < 3; ++page) space->write(page, page);
  space->hints().advise(space->pages(0, 1), Advice::kPreferNear);
  space->hints().advise(space->pages(2, 1), Advice::kPreferFar);
  space->write(3, 3);  // evicts 2, though it is the youngest
  const std::uint64_t before = space->counters().faults;
  EXPECT_EQ(space->word(0), 0U);
  EXPECT_EQ(space->word(1), 1U);
  EXPECT_EQ(space->counters().faults, before);
  EXPECT_EQ(space->word(2), 2U);  // evicts 1, though 0 is older
  EXPECT_EQ(space->word(0), 0U);
  EXPECT_EQ(space->counters().faults, before + 1);
}

TEST_P(ManagedSpaceContract, PrefetchBringsContentSoThatNoFaultFollows) {
  make(options(8, 4));
  for (std::size_t page = 0; page < 4; ++page) space->write(page, 10 + page);
  EXPECT_EQ(space->move(0, 4, MemoryTier::kFar), nullptr);
  const Counters before = space->counters();
  EXPECT_EQ(space->move(0, 4, MemoryTier::kNear), nullptr);
  for (std::size_t page = 0; page < 4; ++page) EXPECT_EQ(space->word(page), 10 + page);
  const Counters done = space->counters() - before;
  EXPECT_EQ(done.faults, 0U);
  EXPECT_EQ(done.bytes_prefetched, 4 * space->page());
}

TEST_P(ManagedSpaceContract, OffloadFreesNearMemoryBeforeItsCompletion) {
  make(options(4, 4));
  for (std::size_t page = 0; page < 4; ++page) space->write(page, page);
  EXPECT_EQ(space->pages_in_use(), 4U);
  EXPECT_EQ(space->move(1, 2, MemoryTier::kFar), nullptr);
  EXPECT_EQ(space->pages_in_use(), 2U);
  EXPECT_EQ(space->counters().bytes_offloaded, 2 * space->page());
  EXPECT_EQ(space->counters().evictions, 0U);
}

TEST_P(ManagedSpaceContract, OffloadOfCleanPagesMovesNoBytes) {
  make(options(4, 4));
  space->write(0, 7);
  space->move(0, 1, MemoryTier::kFar);
  space->move(0, 1, MemoryTier::kNear);
  space->use(0, 1, Access::kRead, [&] { EXPECT_EQ(space->word(0), 7U); });
  space->move(0, 1, MemoryTier::kFar);
  EXPECT_EQ(space->far().writes, 1);
  EXPECT_EQ(space->counters().bytes_offloaded, space->page());
  EXPECT_EQ(space->word(0), 7U);
}

TEST_P(ManagedSpaceContract, ADeclaredWriteMakesACleanPageDirty) {
  make(options(4, 4));
  space->write(0, 7);
  space->move(0, 1, MemoryTier::kFar);
  space->move(0, 1, MemoryTier::kNear);
  space->write(0, 8);  // no fault: only the declaration tells
  space->move(0, 1, MemoryTier::kFar);
  EXPECT_EQ(space->far().writes, 2);
  EXPECT_EQ(space->word(0), 8U);
}

TEST_P(ManagedSpaceContract, DeclaredReadersFaultPagesInClean) {
  make(options(4, 2));
  for (std::size_t page = 0; page < 4; ++page) space->write(page, page);
  space->move(0, 4, MemoryTier::kFar);
  const int before = space->far().writes;
  for (std::size_t page = 0; page < 4; ++page) {
    space->use(page, 1, Access::kRead, [&] { EXPECT_EQ(space->word(page), page); });
  }
  EXPECT_EQ(space->counters().evictions, 2U + 2U);
  EXPECT_EQ(space->far().writes, before);
}

TEST_P(ManagedSpaceContract, ReadMostlyPagesStayCleanWhenTouchedOutsideAUse) {
  make(options(4, 4));
  space->write(0, 7);
  space->write(1, 8);
  space->move(0, 2, MemoryTier::kFar);
  space->hints().advise(space->pages(0, 1), Advice::kReadMostly);
  EXPECT_EQ(space->word(0), 7U);
  EXPECT_EQ(space->word(1), 8U);
  space->move(0, 2, MemoryTier::kFar);
  EXPECT_EQ(space->far().writes, 2 + 1);  // page 1 might have been written
  space->write(0, 9);
  space->move(0, 1, MemoryTier::kFar);
  EXPECT_EQ(space->word(0), 9U);
}

TEST_P(ManagedSpaceContract, AReadMostlyRangeMayBeInitialisedByTouchingIt) {
  make(options(4, 2));
  space->hints().advise(space->pages(0, 4), Advice::kReadMostly);
  for (std::size_t page = 0; page < 4; ++page) space->word(page) = 10 + page;
  for (std::size_t page = 0; page < 4; ++page) EXPECT_EQ(space->word(page), 10 + page);
  space->move(0, 4, MemoryTier::kFar);
  EXPECT_EQ(space->far().writes, 4);  // once each: the second touch left them clean
}

TEST_P(ManagedSpaceContract, OverwritingAPageThatIsFarFetchesNothing) {
  make(options(4, 4));
  space->write(0, 7);
  space->move(0, 1, MemoryTier::kFar);
  space->use(0, 1, Access::kWrite,
             [&] { std::memset(space->pages(0, 1).data(), 1, space->page().count()); });
  EXPECT_EQ(space->far().reads, 0);
  space->move(0, 1, MemoryTier::kFar);
  EXPECT_EQ(space->word(0), 0x0101010101010101U);
}

TEST_P(ManagedSpaceContract, APageThatIsReadAndOverwrittenAtOnceIsFetched) {
  make(options(4, 4));
  space->write(0, 7);
  space->move(0, 1, MemoryTier::kFar);
  space->use(0, 1, Access::kWrite,
             [&] { space->use(0, 1, Access::kRead, [&] { EXPECT_EQ(space->word(0), 7U); }); });
}

TEST_P(ManagedSpaceContract, OverwritingHalfAPageKeepsTheOtherHalf) {
  make(options(4, 4));
  space->write(0, 7);
  space->move(0, 1, MemoryTier::kFar);
  const Use half{.range = space->pages(0, 1).first(space->page().count() / 2),
                 .access = Access::kWrite};
  space->hints().begin_use({&half, 1});
  space->word(0) = 8;
  space->hints().end_use({&half, 1});
  EXPECT_EQ(space->last_word(0), 7U);
}

}  // namespace spillway::um
