#pragma once

#include <gtest/gtest.h>

#include <chrono>
#include <cmath>
#include <cstring>
#include <future>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "tests/um/host/managed_test_space.h"
#include "um/host/uffd_probe.h"

namespace spillway::um {

/// One way to page that has to keep the contract.
struct PagingWay {
  Paging paging;
  Bytes page;
};

inline std::string name_of(const testing::TestParamInfo<PagingWay>& info) {
  return std::to_string(info.param.page / 1_KiB) + "KiB";
}

/// The contract of managed memory. Instantiated by each way to page.
class ManagedSpaceContract : public testing::TestWithParam<PagingWay> {
 protected:
  using Clock = std::chrono::steady_clock;

  [[nodiscard]] static SpaceOptions options(std::uint64_t pages, std::uint64_t near_pages) {
    const Bytes page = GetParam().page;
    return {
        .size = pages * page, .near = near_pages * page, .page = page, .paging = GetParam().paging};
  }
  static void make(const SpaceOptions& options) { space.emplace(options, options.near); }
  void SetUp() override {
    if (GetParam().paging != Paging::kUffdMove) return;
    if (const auto reason = probe_uffd_move()) GTEST_SKIP() << *reason;
  }
  void TearDown() override { space.reset(); }

  static inline std::optional<ManagedTestSpace> space;
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

TEST_P(ManagedSpaceContract, TheLedgerMayBeTighterThanNearMemory) {
  SpaceOptions wanted = options(8, 6);
  space.emplace(wanted, 2 * wanted.page);
  for (std::size_t page = 0; page < 8; ++page) space->word(page) = page;
  EXPECT_EQ(space->ledger().peak(), 2 * space->page());
  for (std::size_t page = 0; page < 8; ++page) EXPECT_EQ(space->word(page), page);
}

TEST_P(ManagedSpaceContract, EvictsThePageUsedLongestAgo) {
  make(options(4, 3));
  for (std::size_t page = 0; page < 3; ++page) space->write(page, page);
  space->use(0, 1, Access::kRead, [] {});  // now page 1 is the oldest
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
  EXPECT_EQ(space->move(0, 4, Place::kFar), nullptr);
  const Counters before = space->counters();
  EXPECT_EQ(space->move(0, 4, Place::kNear), nullptr);
  for (std::size_t page = 0; page < 4; ++page) EXPECT_EQ(space->word(page), 10 + page);
  const Counters done = space->counters() - before;
  EXPECT_EQ(done.faults, 0U);
  EXPECT_EQ(done.bytes_prefetched, 4 * space->page());
}

TEST_P(ManagedSpaceContract, OffloadFreesNearMemoryBeforeItsCompletion) {
  make(options(4, 4));
  for (std::size_t page = 0; page < 4; ++page) space->write(page, page);
  EXPECT_EQ(space->pages_in_use(), 4U);
  EXPECT_EQ(space->move(1, 2, Place::kFar), nullptr);
  EXPECT_EQ(space->pages_in_use(), 2U);
  EXPECT_EQ(space->counters().bytes_offloaded, 2 * space->page());
  EXPECT_EQ(space->counters().evictions, 0U);
}

TEST_P(ManagedSpaceContract, OffloadOfCleanPagesMovesNoBytes) {
  make(options(4, 4));
  space->write(0, 7);
  space->move(0, 1, Place::kFar);
  space->move(0, 1, Place::kNear);
  space->use(0, 1, Access::kRead, [] { EXPECT_EQ(space->word(0), 7U); });
  space->move(0, 1, Place::kFar);
  EXPECT_EQ(space->far().writes, 1);
  EXPECT_EQ(space->counters().bytes_offloaded, space->page());
  EXPECT_EQ(space->word(0), 7U);
}

TEST_P(ManagedSpaceContract, ADeclaredWriteMakesACleanPageDirty) {
  make(options(4, 4));
  space->write(0, 7);
  space->move(0, 1, Place::kFar);
  space->move(0, 1, Place::kNear);
  space->write(0, 8);  // no fault: only the declaration tells
  space->move(0, 1, Place::kFar);
  EXPECT_EQ(space->far().writes, 2);
  EXPECT_EQ(space->word(0), 8U);
}

TEST_P(ManagedSpaceContract, DeclaredReadersFaultPagesInClean) {
  make(options(4, 2));
  for (std::size_t page = 0; page < 4; ++page) space->write(page, page);
  space->move(0, 4, Place::kFar);
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
  space->move(0, 2, Place::kFar);
  space->hints().advise(space->pages(0, 1), Advice::kReadMostly);
  EXPECT_EQ(space->word(0), 7U);
  EXPECT_EQ(space->word(1), 8U);
  space->move(0, 2, Place::kFar);
  EXPECT_EQ(space->far().writes, 2 + 1);  // page 1 might have been written
  space->write(0, 9);
  space->move(0, 1, Place::kFar);
  EXPECT_EQ(space->word(0), 9U);
}

TEST_P(ManagedSpaceContract, OverwritingAPageThatIsFarFetchesNothing) {
  make(options(4, 4));
  space->write(0, 7);
  space->move(0, 1, Place::kFar);
  space->use(0, 1, Access::kWrite,
             [] { std::memset(space->pages(0, 1).data(), 1, space->page().count()); });
  EXPECT_EQ(space->far().reads, 0);
  space->move(0, 1, Place::kFar);
  EXPECT_EQ(space->word(0), 0x0101010101010101U);
}

TEST_P(ManagedSpaceContract, APageThatIsReadAndOverwrittenAtOnceIsFetched) {
  make(options(4, 4));
  space->write(0, 7);
  space->move(0, 1, Place::kFar);
  space->use(0, 1, Access::kWrite,
             [] { space->use(0, 1, Access::kRead, [] { EXPECT_EQ(space->word(0), 7U); }); });
}

TEST_P(ManagedSpaceContract, OverwritingHalfAPageKeepsTheOtherHalf) {
  make(options(4, 4));
  space->write(0, 7);
  space->move(0, 1, Place::kFar);
  const Use half{.range = space->pages(0, 1).first(space->page().count() / 2),
                 .access = Access::kWrite};
  space->hints().begin_use({&half, 1});
  space->word(0) = 8;
  space->hints().end_use({&half, 1});
  EXPECT_EQ(space->last_word(0), 7U);
}

TEST_P(ManagedSpaceContract, DiscardFreesNearMemoryWithoutWriteBack) {
  make(options(4, 4));
  for (std::size_t page = 0; page < 3; ++page) space->write(page, 5);
  space->hints().discard(space->pages(0, 2));
  EXPECT_EQ(space->pages_in_use(), 1U);
  EXPECT_EQ(space->counters().discarded_pages, 2U);
  EXPECT_EQ(space->far().writes, 0);
  EXPECT_EQ(space->word(0), 0U);  // nothing is left of it
  EXPECT_EQ(space->word(2), 5U);
}

TEST_P(ManagedSpaceContract, DiscardForgetsFarContentAndAWriteAfterItIsKept) {
  make(options(4, 2));
  space->write(0, 5);
  space->move(0, 1, Place::kFar);
  space->hints().discard(space->pages(0, 1));
  EXPECT_EQ(space->counters().discarded_pages, 0U);  // it was not near
  space->write(0, 6);
  space->hints().discard(space->pages(1, 3));
  space->move(0, 1, Place::kFar);
  EXPECT_EQ(space->word(0), 6U);
  EXPECT_EQ(space->far().reads, 1);
}

TEST_P(ManagedSpaceContract, DiscardOfAnOperandInUseIsABugOfTheCaller) {
  make(options(4, 2));
  space->use(0, 1, Access::kRead,
             [] { EXPECT_THROW(space->hints().discard(space->pages(0, 2)), ContractError); });
}

TEST_P(ManagedSpaceContract, PopulateGivesNearMemoryWithoutContent) {
  make(options(4, 2));
  space->write(0, 5);
  space->move(0, 1, Place::kFar);
  space->hints().populate(space->pages(0, 2));
  EXPECT_EQ(space->pages_in_use(), 2U);
  EXPECT_EQ(space->far().reads, 0);
  const std::uint64_t before = space->counters().faults;
  space->write(1, 6);
  EXPECT_EQ(space->counters().faults, before);
  space->move(0, 2, Place::kFar);
  EXPECT_EQ(space->far().writes, 1 + 1);  // page 0 was never written after it: no content to save
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
  space->use(0, 1, Access::kRead, [] {
    for (std::size_t page = 1; page < 6; ++page) space->write(page, page);
    const std::uint64_t before = space->counters().faults;
    EXPECT_EQ(space->word(0), 5U);
    EXPECT_EQ(space->counters().faults, before);
    EXPECT_EQ(space->move(0, 1, Place::kFar), nullptr);  // an offload leaves it out, too
    EXPECT_EQ(space->counters().refused_hints, 1U);
    EXPECT_EQ(space->word(0), 5U);
    EXPECT_EQ(space->counters().faults, before);
  });
}

TEST_P(ManagedSpaceContract, NestedUsesHoldUntilTheLastEnds) {
  make(options(6, 3));
  space->write(0, 5);
  space->use(0, 1, Access::kRead, [] {
    space->use(0, 1, Access::kRead, [] {});
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
  space->use(0, 2, Access::kRead, [] {
    EXPECT_EQ(space->move(2, 3, Place::kNear), nullptr);
    space->hints().populate(space->pages(5, 1));
  });
  EXPECT_EQ(space->counters().refused_hints, 3U + 1U);
  EXPECT_EQ(space->counters().evictions, 0U);
  EXPECT_EQ(space->move(2, 2, Place::kNear), nullptr);  // after the use there is room
  EXPECT_EQ(space->counters().evictions, 2U);
}

TEST_P(ManagedSpaceContract, AFaultWithAllNearMemoryInUseEndsTheProcess) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const auto need_three_pages = [] {
    make(options(4, 2));
    space->use(0, 3, Access::kReadWrite, [] {
      for (std::size_t page = 0; page < 3; ++page) space->word(page) = 1;
    });
  };
  EXPECT_DEATH(need_three_pages(), "near memory of .* is too small for the pages in use");
}

TEST_P(ManagedSpaceContract, PoisonShowsReadsOfWhatWasNeverWritten) {
  SpaceOptions poisoned = options(4, 4);
  poisoned.poison = true;
  make(poisoned);
  const auto value = [](std::size_t page) {
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
  SpaceOptions slow = options(8, 8);
  // 8 pages in 40 ms.
  slow.link.bandwidth = Bandwidth{static_cast<double>(slow.size.count()) / 0.040};
  make(slow);
  for (std::size_t page = 0; page < 8; ++page) space->write(page, 1);
  for (const Place place : {Place::kFar, Place::kNear}) {
    const Clock::time_point start = Clock::now();
    space->move(0, 8, place);
    EXPECT_GE(Clock::now() - start, std::chrono::milliseconds{40});
  }
  const Clock::time_point start = Clock::now();
  space->move(0, 8, Place::kFar);  // clean: no bytes cross the link
  EXPECT_LT(Clock::now() - start, std::chrono::milliseconds{40});
}

TEST_P(ManagedSpaceContract, FaultsTakeAtLeastTheirLatency) {
  SpaceOptions slow = options(4, 4);
  slow.fault_latency = std::chrono::milliseconds{3};
  make(slow);
  for (std::size_t page = 0; page < 4; ++page) space->word(page) = 1;
  EXPECT_EQ(space->counters().faults, 4U);
  EXPECT_GE(space->counters().fault_time, std::chrono::milliseconds{12});
}

TEST_P(ManagedSpaceContract, KeepsTheWatermarkFree) {
  SpaceOptions eager = options(8, 4);
  eager.free_page_watermark = 2;
  make(eager);
  for (std::size_t page = 0; page < 8; ++page) space->word(page) = page;
  while (space->pages_in_use() > 2)
    std::this_thread::yield();  // hangs, so fails, when it is not kept
  for (std::size_t page = 0; page < 8; ++page) EXPECT_EQ(space->word(page), page);
}

TEST_P(ManagedSpaceContract, AFailedOffloadReachesItsCompletionAndTheNextUse) {
  make(options(4, 4));
  space->write(0, 5);
  space->far().fails_to_write = true;
  EXPECT_NE(space->move(0, 1, Place::kFar), nullptr);
  EXPECT_THROW(space->write(1, 5), Error);
  EXPECT_THROW(space->write(2, 5), Error);  // and every later one: its content is lost
}

TEST_P(ManagedSpaceContract, AFailedPrefetchReachesItsCompletionAndTheNextUse) {
  make(options(4, 4));
  space->write(0, 5);
  space->move(0, 1, Place::kFar);
  space->far().fails_to_read = true;
  EXPECT_NE(space->move(0, 1, Place::kNear), nullptr);
  EXPECT_THROW(space->write(1, 5), Error);
}

TEST_P(ManagedSpaceContract, AFailedFaultReachesTheNextUse) {
  make(options(4, 4));
  space->write(0, 5);
  space->move(0, 1, Place::kFar);
  space->far().fails_to_read = true;
  EXPECT_EQ(space->word(0), 0U);  // the thread goes on, with zeros
  EXPECT_THROW(space->write(1, 5), Error);
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
  const SpaceOptions wanted = options(4, 4);
  Ledger ledger{wanted.near};
  {
    const auto region = make_managed_region(wanted, ledger);
    region->hints().populate(region->slab());
    EXPECT_EQ(ledger.in_use(), wanted.near);
  }
  EXPECT_EQ(ledger.in_use(), Bytes{});
}

}  // namespace spillway::um
