#pragma once

#include <gtest/gtest.h>

#include <chrono>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <exception>
#include <optional>
#include <ostream>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "tests/um/host/managed_test_space.h"
#include "um/error.h"
#include "um/host/far/far_store.h"
#include "um/host/managed/uffd_move.h"

// The contract of managed memory: touches and declared uses, hints and limits, discards, and
// failing far memory. After a failure, hints leave content where it is. A fault in a launch lets
// the launch continue to its check(); any other fault ends the process.

namespace spillway::um {

/// A way to page that must satisfy the contract.
struct PagingWay {
  Paging paging;
  Bytes page;
};

// Gtest requires this name.
// NOLINTNEXTLINE(readability-identifier-naming)
inline void PrintTo(const PagingWay& way, std::ostream* out) {
  *out << (way.paging == Paging::kUffdMove ? "UffdMove" : "MemfdSegv") << way.page / 1_KiB << "KiB";
}

inline std::string name_of(const testing::TestParamInfo<PagingWay>& info) {
  return testing::PrintToString(info.param);
}

/// A managed space paged in one way.
class ManagedSpaceContract : public testing::TestWithParam<PagingWay> {
 protected:
  using Clock = std::chrono::steady_clock;

  [[nodiscard]] static ManagedOptions options(std::uint64_t pages, std::uint64_t near_pages) {
    const Bytes page = GetParam().page;
    return {
        .size = pages * page, .near = near_pages * page, .page = page, .paging = GetParam().paging};
  }
  void make(const ManagedOptions& options) { space.emplace(options, options.near); }

  void SetUp() override {
    if (GetParam().paging != Paging::kUffdMove) return;
    if (const auto reason = probe_uffd_move()) GTEST_SKIP() << *reason;
  }
  void TearDown() override { space.reset(); }

  std::optional<ManagedTestSpace> space;
};

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
       ++page) {  // written outside a declared use, but dirty all the same
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

// More pages than an engine has in flight at once.
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
  space->use(0, 1, Access::kRead, [&] {});  // page 1 is the oldest now
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
  space->write(3, 3);  // evicts page 2, although it is the most recent
  const std::uint64_t before = space->counters().faults;
  EXPECT_EQ(space->word(0), 0U);
  EXPECT_EQ(space->word(1), 1U);
  EXPECT_EQ(space->counters().faults, before);
  EXPECT_EQ(space->word(2), 2U);  // evicts page 1, although page 0 is older
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
  space->write(0, 8);  // no fault: only the declaration shows the write
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
  EXPECT_EQ(space->far().reads, 1);
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

TEST_P(ManagedSpaceContract, PopulateKeepsWhatAUseUnderWayWrites) {
  make(options(4, 2));
  space->write(0, 5);
  space->write(1, 6);
  space->hints().discard(space->pages(0, 1));  // page 2 gets its slot
  space->use(2, 1, Access::kWrite, [&] {
    space->hints().populate(space->pages(2, 1));
    space->word(2) = 9;
  });
  space->move(2, 1, MemoryTier::kFar);
  EXPECT_EQ(space->word(2), 9U);
}

TEST_P(ManagedSpaceContract, PopulateGivesNearMemoryWithoutContent) {
  make(options(4, 2));
  space->write(0, 5);
  space->move(0, 1, MemoryTier::kFar);
  space->hints().populate(space->pages(0, 2));
  EXPECT_EQ(space->pages_in_use(), 2U);
  EXPECT_EQ(space->far().reads, 0);
  const std::uint64_t before = space->counters().faults;
  space->write(1, 6);
  EXPECT_EQ(space->counters().faults, before);
  space->move(0, 2, MemoryTier::kFar);
  EXPECT_EQ(space->far().writes, 1 + 1);  // page 0 has no content to save
  EXPECT_EQ(space->word(1), 6U);
}

TEST_P(ManagedSpaceContract, PopulateLeavesResidentPagesAlone) {
  make(options(4, 2));
  space->write(0, 5);
  space->hints().populate(space->pages(0, 2));
  EXPECT_EQ(space->word(0), 5U);
}

TEST_P(ManagedSpaceContract, OperandsInUseAreNotEvicted) {
  make(options(6, 3));
  space->write(0, 5);
  space->use(0, 1, Access::kRead, [&] {
    for (std::size_t page = 1; page < 6; ++page) space->write(page, page);
    const std::uint64_t before = space->counters().faults;
    EXPECT_EQ(space->word(0), 5U);
    EXPECT_EQ(space->counters().faults, before);
    EXPECT_EQ(space->move(0, 1, MemoryTier::kFar), nullptr);  // an offload skips it, too
    EXPECT_EQ(space->counters().refused_hints, 1U);
    EXPECT_EQ(space->word(0), 5U);
    EXPECT_EQ(space->counters().faults, before);
  });
}

TEST_P(ManagedSpaceContract, NestedUsesHoldUntilTheLastEnds) {
  make(options(6, 3));
  space->write(0, 5);
  space->use(0, 1, Access::kRead, [&] {
    space->use(0, 1, Access::kRead, [&] {});
    for (std::size_t page = 1; page < 6; ++page) space->write(page, page);
    const std::uint64_t before = space->counters().faults;
    EXPECT_EQ(space->word(0), 5U);
    EXPECT_EQ(space->counters().faults, before);
  });
}

TEST_P(ManagedSpaceContract, PrefetchWithAllNearMemoryInUseIsRefused) {
  make(options(6, 2));
  space->write(0, 5);
  space->write(1, 5);
  space->use(0, 2, Access::kRead, [&] {
    EXPECT_EQ(space->move(2, 3, MemoryTier::kNear), nullptr);
    space->hints().populate(space->pages(5, 1));
  });
  EXPECT_EQ(space->counters().refused_hints, 3U + 1U);
  EXPECT_EQ(space->counters().evictions, 0U);
  EXPECT_EQ(space->move(2, 2, MemoryTier::kNear), nullptr);  // after the use there is room
  EXPECT_EQ(space->counters().evictions, 2U);
}

TEST_P(ManagedSpaceContract, AFaultWithAllNearMemoryInUseEndsTheProcess) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const auto need_three_pages = [&] {
    make(options(4, 2));
    space->use(0, 3, Access::kReadWrite, [&] {
      for (std::size_t page = 0; page < 3; ++page) space->word(page) = 1;
    });
  };
  EXPECT_DEATH(need_three_pages(), "near memory of .* is too small for the pages in use");
}

TEST_P(ManagedSpaceContract, PoisonShowsReadsOfWhatWasNeverWritten) {
  ManagedOptions poisoned = options(4, 4);
  poisoned.poison = true;
  make(poisoned);
  const auto value = [&](std::size_t page) {
    double bits = 0;
    std::memcpy(&bits, space->pages(page, 1).data(), sizeof(bits));
    return bits;
  };
  space->hints().populate(space->pages(0, 1));
  EXPECT_TRUE(std::isnan(value(0)));
  EXPECT_TRUE(std::isnan(value(1)));
  space->write(2, 0);
  EXPECT_EQ(value(2), 0.0);
  space->hints().discard(space->pages(2, 1));
  EXPECT_TRUE(std::isnan(value(2)));
}

TEST_P(ManagedSpaceContract, MovesTakeAtLeastTheTimeOfTheLink) {
  ManagedOptions slow = options(8, 8);
  // 8 pages in 40 ms.
  slow.link.bandwidth = Bandwidth{static_cast<double>(slow.size.count()) / 0.040};
  make(slow);
  for (std::size_t page = 0; page < 8; ++page) space->write(page, 1);
  for (const MemoryTier tier : {MemoryTier::kFar, MemoryTier::kNear}) {
    const Clock::time_point start = Clock::now();
    space->move(0, 8, tier);
    EXPECT_GE(Clock::now() - start, std::chrono::milliseconds{40});
  }
  EXPECT_EQ(space->counters().bytes_offloaded, slow.size);
  space->move(0, 8, MemoryTier::kFar);  // clean: no bytes cross the link
  EXPECT_EQ(space->counters().bytes_offloaded, slow.size);
}

TEST_P(ManagedSpaceContract, FaultsTakeAtLeastTheirLatency) {
  ManagedOptions slow = options(4, 4);
  slow.fault_latency = std::chrono::milliseconds{3};
  make(slow);
  for (std::size_t page = 0; page < 4; ++page) space->word(page) = 1;
  EXPECT_EQ(space->counters().faults, 4U);
  EXPECT_GE(space->counters().fault_time, std::chrono::milliseconds{12});
}

TEST_P(ManagedSpaceContract, TellsHowManyBytesOfARangeAreNear) {
  make(options(4, 3));
  const auto near = [&](Range range) { return space->near_bytes(range); };
  EXPECT_EQ(near(space->pages(0, 4)), 0_B);
  space->write(1, 5);
  space->write(2, 5);
  EXPECT_EQ(near(space->pages(0, 4)), 2 * space->page());
  EXPECT_EQ(near(space->pages(0, 4).subspan(space->page().count() - 1, 11)), 10_B);
  EXPECT_EQ(near(space->pages(3, 1)), 0_B);
  EXPECT_EQ(near({}), 0_B);
  space->move(1, 1, MemoryTier::kFar);
  EXPECT_EQ(near(space->pages(0, 4)), space->page());
  std::vector<std::byte> elsewhere(16);
  EXPECT_THROW(static_cast<void>(near(elsewhere)), ContractError);
}

TEST_P(ManagedSpaceContract, KeepsUndeclaredWritesToPrefetchedPagesWhenToldThatThereAreSome) {
  ManagedOptions undeclared = options(4, 4);
  undeclared.writes_are_declared = false;
  make(undeclared);
  space->move(1, 1, MemoryTier::kNear);  // a page without content
  space->word(1) = 6;                    // this write causes no fault
  space->write(0, 5);
  space->move(0, 2, MemoryTier::kFar);
  space->hints().advise(space->pages(0, 1), Advice::kReadMostly);
  space->move(0, 1, MemoryTier::kNear);
  space->word(0) = 7;  // nor does this one
  space->hints().populate(space->pages(2, 1));
  space->word(2) = 8;
  space->move(0, 4, MemoryTier::kFar);
  EXPECT_EQ(space->word(0), 7U);
  EXPECT_EQ(space->word(1), 6U);
  EXPECT_EQ(space->word(2), 8U);
}

TEST_P(ManagedSpaceContract, KeepsAnUndeclaredWriteDuringAReadOfAnother) {
  ManagedOptions undeclared = options(4, 4);
  undeclared.writes_are_declared = false;
  make(undeclared);
  space->write(0, 5);
  space->move(0, 1, MemoryTier::kFar);
  space->use(0, 1, Access::kRead, [&] { space->word(0) = 7; });
  space->move(0, 1, MemoryTier::kFar);
  EXPECT_EQ(space->word(0), 7U);
}

TEST_P(ManagedSpaceContract, AnUnevenHintIsABugOfTheCaller) {
  make(options(4, 4));
  const Range uneven = space->pages(0, 1).first(space->page().count() / 2);
  EXPECT_THROW(space->hints().populate(uneven), ContractError);
  std::vector<std::byte> elsewhere(16);
  const Use foreign{.range = elsewhere, .access = Access::kRead};
  EXPECT_THROW(space->hints().begin_use({&foreign, 1}), ContractError);
}

TEST_P(ManagedSpaceContract, ReleasesItsWholeChargeWhenItEnds) {
  const ManagedOptions wanted = options(4, 4);
  Ledger ledger{wanted.near};
  {
    const auto region = make_managed_region(wanted, ledger);
    region->hints().populate(region->slab());
    EXPECT_EQ(ledger.in_use(), wanted.near);
  }
  EXPECT_EQ(ledger.in_use(), Bytes{});
}

TEST_P(ManagedSpaceContract, DiscardFreesNearMemoryWithoutWriteBack) {
  make(options(4, 4));
  for (std::size_t page = 0; page < 3; ++page) space->write(page, 5);
  space->hints().discard(space->pages(0, 2));
  EXPECT_EQ(space->pages_in_use(), 1U);
  EXPECT_EQ(space->counters().discarded_pages, 2U);
  EXPECT_EQ(space->far().writes, 0);
  EXPECT_EQ(space->near_bytes(space->pages(0, 3)), space->page());
  EXPECT_EQ(space->word(2), 5U);
}

TEST_P(ManagedSpaceContract, DiscardGivesItsRoomToOtherPages) {
  make(options(6, 2));
  for (std::size_t page = 0; page < 2; ++page) space->write(page, 5);
  space->hints().discard(space->pages(0, 2));
  space->hints().populate(space->pages(2, 1));
  space->write(2, 6);
  space->write(3, 7);  // by a page fault
  EXPECT_EQ(space->pages_in_use(), 2U);
  EXPECT_EQ(space->counters().evictions, 0U);
  space->move(2, 2, MemoryTier::kFar);
  space->write(0, 8);
  space->write(1, 9);
  space->move(2, 2, MemoryTier::kNear);
  EXPECT_EQ(space->word(2), 6U);
  EXPECT_EQ(space->word(3), 7U);
  EXPECT_EQ(space->word(0), 8U);
  EXPECT_EQ(space->word(1), 9U);
}

TEST_P(ManagedSpaceContract, PopulatedPagesTakeTheRoomOfDiscardedOnes) {
  make(options(6, 2));
  for (std::size_t page = 0; page < 2; ++page) space->write(page, 5);
  space->hints().discard(space->pages(0, 2));
  space->hints().populate(space->pages(2, 2));
  EXPECT_EQ(space->near_bytes(space->pages(2, 2)), 2 * space->page());
  EXPECT_EQ(space->near_bytes(space->pages(0, 2)), 0_B);
  space->write(2, 6);
  space->write(3, 7);
  EXPECT_EQ(space->counters().faults, 2U);  // the first two writes
  space->move(2, 2, MemoryTier::kFar);
  EXPECT_EQ(space->far().writes, 2);
  EXPECT_EQ(space->word(0), 0U);  // by a page fault: the page has no content
  EXPECT_EQ(space->word(2), 6U);
  EXPECT_EQ(space->word(3), 7U);
}

TEST_P(ManagedSpaceContract, ADiscardedPageIsSavedWhenItWasUsedAgain) {
  make(options(4, 4));
  for (std::size_t page = 0; page < 3; ++page) space->write(page, 5);
  space->hints().discard(space->pages(0, 3));
  space->hints().populate(space->pages(0, 1));
  space->write(0, 6);  // populated
  space->write(1, 7);  // not populated
  EXPECT_EQ(space->pages_in_use(), 2U);
  space->move(0, 3, MemoryTier::kFar);
  EXPECT_EQ(space->far().writes, 2);
  EXPECT_EQ(space->pages_in_use(), 0U);
  EXPECT_EQ(space->word(0), 6U);
  EXPECT_EQ(space->word(1), 7U);
  space->move(2, 1, MemoryTier::kNear);
  EXPECT_EQ(space->word(2), 0U);
}

TEST_P(ManagedSpaceContract, ADiscardedPageIsNotNearAgainWithoutRoom) {
  make(options(4, 2));
  space->write(0, 5);
  space->hints().discard(space->pages(0, 1));
  space->ledger().charge(2 * space->page());  // by another user of the ledger
  space->hints().populate(space->pages(0, 1));
  EXPECT_EQ(space->counters().refused_hints, 1U);
  EXPECT_EQ(space->near_bytes(space->pages(0, 1)), 0_B);
  space->ledger().release(2 * space->page());
  EXPECT_EQ(space->word(0), 0U);
}

TEST_P(ManagedSpaceContract, DiscardForgetsFarContentAndAWriteAfterItIsKept) {
  make(options(4, 2));
  space->write(0, 5);
  space->move(0, 1, MemoryTier::kFar);
  space->hints().discard(space->pages(0, 1));
  EXPECT_EQ(space->counters().discarded_pages, 0U);  // it was not near
  space->write(0, 6);
  space->hints().discard(space->pages(1, 3));
  space->move(0, 1, MemoryTier::kFar);
  EXPECT_EQ(space->word(0), 6U);
  EXPECT_EQ(space->far().reads, 1);
}

TEST_P(ManagedSpaceContract, DiscardOfAnOperandInUseIsABugOfTheCaller) {
  make(options(4, 2));
  space->use(0, 1, Access::kRead,
             [&] { EXPECT_THROW(space->hints().discard(space->pages(0, 2)), ContractError); });
}

TEST_P(ManagedSpaceContract, DiscardSeesAUseThatBeganWhileItWaitedForAMove) {
  make(options(4, 4));
  space->write(1, 5);
  space->move(1, 1, MemoryTier::kFar);
  space->write(0, 5);
  space->far().holds_reads = true;
  std::promise<std::exception_ptr> moved;
  space->hints().prefetch(space->pages(1, 1), MemoryTier::kNear,
                          [&](std::exception_ptr failure) { moved.set_value(std::move(failure)); });
  while (space->far().reads == 0) std::this_thread::yield();
  std::thread discarder{
      [&] { EXPECT_THROW(space->hints().discard(space->pages(0, 2)), ContractError); }};
  while (space->counters().discarded_pages == 0) std::this_thread::yield();
  space->use(1, 1, Access::kRead, [&] {  // page 0 is gone, and page 1 is awaited
    space->far().holds_reads = false;
    EXPECT_EQ(moved.get_future().get(), nullptr);
    discarder.join();
    EXPECT_EQ(space->word(1), 5U);
  });
  space->move(1, 1, MemoryTier::kFar);
  EXPECT_EQ(space->pages_in_use(), 0U);
}

TEST_P(ManagedSpaceContract, AnOffloadWaitsForAPrefetchOfItsPage) {
  make(options(4, 4));
  space->write(1, 5);
  space->move(1, 1, MemoryTier::kFar);
  space->far().holds_reads = true;
  const auto start = [&](MemoryTier to, std::promise<std::exception_ptr>& done) {
    space->hints().prefetch(space->pages(1, 1), to, [&done](std::exception_ptr failure) {
      done.set_value(std::move(failure));
    });
  };
  std::promise<std::exception_ptr> back;
  std::promise<std::exception_ptr> away;
  start(MemoryTier::kNear, back);
  while (space->far().reads == 0) std::this_thread::yield();
  start(MemoryTier::kFar, away);
  std::this_thread::sleep_for(std::chrono::milliseconds{20});  // for one that would not wait
  space->far().holds_reads = false;
  EXPECT_EQ(back.get_future().get(), nullptr);
  EXPECT_EQ(away.get_future().get(), nullptr);
  EXPECT_EQ(space->pages_in_use(), 0U);
  EXPECT_EQ(space->word(1), 5U);
}

/// A managed space with far memory that fails on demand.
class ManagedFailureContract : public ManagedSpaceContract {
 protected:
  /// Writes 5 to the first and last word of page 0 of four and moves it far. All pages fit near.
  void make_with_far_page() {
    make(options(4, 4));
    space->write(0, 5);
    space->move(0, 1, MemoryTier::kFar);
  }
  /// Makes four pages with room for two near and without declared writes.
  void make_undeclared() {
    ManagedOptions undeclared = options(4, 2);
    undeclared.writes_are_declared = false;
    make(undeclared);
  }
};

/// Faults in a launch. Failing far memory throws in their handler.
class ManagedFaultFailureContract : public ManagedFailureContract {
 protected:
  void SetUp() override {
#ifdef __SANITIZE_THREAD__
    GTEST_SKIP() << "TSan objects to allocating in a signal handler";
#else
    ManagedFailureContract::SetUp();
#endif
  }
};

TEST_P(ManagedFailureContract, AFailedOffloadReachesItsCompletionAndTheNextUse) {
  make(options(4, 4));
  space->write(0, 5);
  space->far().fails_to_write = true;
  EXPECT_NE(space->move(0, 1, MemoryTier::kFar), nullptr);
  EXPECT_THROW(space->write(1, 5), Error);
  EXPECT_THROW(space->write(2, 5), Error);  // and every later use
}

TEST_P(ManagedFailureContract, AFailedPrefetchReachesItsCompletionAndTheNextUse) {
  make_with_far_page();
  space->far().fails_to_read = true;
  EXPECT_NE(space->move(0, 1, MemoryTier::kNear), nullptr);
  EXPECT_THROW(space->write(1, 5), Error);
}

TEST_P(ManagedFaultFailureContract, AFailedFaultReachesTheNextUse) {
  make_with_far_page();
  space->far().fails_to_read = true;
  EXPECT_EQ(space->word(0), 0U);  // the thread continues with zeros
  EXPECT_THROW(space->write(1, 5), Error);
}

TEST_P(ManagedFaultFailureContract, AFailedFaultOfTheLastLaunchIsToldWithoutAnother) {
  make_with_far_page();
  EXPECT_NO_THROW(space->hints().check());
  space->far().fails_to_read = true;
  space->use(0, 1, Access::kRead, [&] { EXPECT_EQ(space->word(0), 0U); });
  EXPECT_THROW(space->hints().check(), Error);
}

TEST_P(ManagedFailureContract, APageThatCannotBeSavedStaysNear) {
  make(options(4, 4));
  space->write(0, 5);
  space->far().fails_to_write = true;
  EXPECT_NE(space->move(0, 1, MemoryTier::kFar), nullptr);
  EXPECT_EQ(space->near_bytes(space->pages(0, 1)), space->page());
  EXPECT_EQ(space->counters().bytes_offloaded, 0_B);
  EXPECT_EQ(space->counters().refused_hints, 1U);
  EXPECT_EQ(space->last_word(0), 5U);
  space->far().fails_to_write = false;
  EXPECT_EQ(space->move(0, 1, MemoryTier::kFar), nullptr);  // as if never tried
  EXPECT_EQ(space->pages_in_use(), 0U);
  EXPECT_EQ(space->last_word(0), 5U);
}

TEST_P(ManagedFailureContract, APrefetchTakesNoRoomOfPagesThatCannotBeSaved) {
  make(options(4, 2));
  space->write(0, 5);
  space->write(1, 6);
  space->far().fails_to_write = true;
  EXPECT_NE(space->move(2, 1, MemoryTier::kNear), nullptr);
  EXPECT_EQ(space->counters().refused_hints, 1U);
  EXPECT_EQ(space->counters().evictions, 0U);
  EXPECT_EQ(space->near_bytes(space->pages(0, 2)), 2 * space->page());
  EXPECT_EQ(space->word(0), 5U);
  EXPECT_EQ(space->word(1), 6U);
  EXPECT_THROW(space->hints().check(), Error);
}

TEST_P(ManagedFailureContract, APageThatCannotBePrefetchedStaysFar) {
  make_with_far_page();
  space->far().fails_to_read = true;
  EXPECT_NE(space->move(0, 1, MemoryTier::kNear), nullptr);
  EXPECT_EQ(space->pages_in_use(), 0U);
  EXPECT_EQ(space->counters().refused_hints, 1U);
  space->far().fails_to_read = false;
  EXPECT_EQ(space->word(0), 5U);
}

// Page 0 cannot be saved when page 2 needs its room, and becomes the most recently used. Page 1
// leaves without being saved.
TEST_P(ManagedFaultFailureContract, AFaultInALaunchWithoutRoomReachesTheCheck) {
  make(options(4, 2));
  space->write(0, 5);
  space->write(1, 6);
  space->far().fails_to_write = true;
  EXPECT_NO_THROW(space->write(2, 7));
  EXPECT_EQ(space->word(0), 5U);
  EXPECT_EQ(space->word(2), 7U);
  EXPECT_THROW(space->hints().check(), Error);
}

TEST_P(ManagedFailureContract, AFaultWithoutRoomEndsAProcessThatDeclaresNothing) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const auto touch_three_pages = [&] {
    make_undeclared();
    space->far().fails_to_write = true;
    for (std::size_t page = 0; page < 3; ++page) space->word(page) = 1;
  };
  EXPECT_DEATH(
      touch_three_pages(),
      "spillway: a page fault cannot be resolved: the test's far memory cannot be written");
}

TEST_P(ManagedFailureContract, AFaultOnWhatCannotBeReadEndsAProcessThatDeclaresNothing) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const auto read_back = [&] {
    make_undeclared();
    space->word(0) = 5;
    space->move(0, 1, MemoryTier::kFar);
    space->far().fails_to_read = true;
    static_cast<void>(space->word(0) + 1);
  };
  EXPECT_DEATH(read_back(),
               "spillway: a page fault cannot be resolved: the test's far memory cannot be read");
}

}  // namespace spillway::um
