#pragma once

#include <gtest/gtest.h>

#include <chrono>
#include <cmath>
#include <cstring>
#include <exception>
#include <future>
#include <thread>
#include <utility>
#include <vector>

#include "tests/um/managed_space_fixture.h"

// The contract of managed memory: hints and limits.

namespace spillway::um {

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
  space->use(0, 1, Access::kRead, [&] {
    for (std::size_t page = 1; page < 6; ++page) space->write(page, page);
    const std::uint64_t before = space->counters().faults;
    EXPECT_EQ(space->word(0), 5U);
    EXPECT_EQ(space->counters().faults, before);
    EXPECT_EQ(space->move(0, 1, MemoryTier::kFar), nullptr);  // an offload leaves it out, too
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
  space->word(1) = 6;                    // no fault tells of this write
  space->write(0, 5);
  space->move(0, 2, MemoryTier::kFar);
  space->hints().advise(space->pages(0, 1), Advice::kReadMostly);
  space->move(0, 1, MemoryTier::kNear);
  space->word(0) = 7;  // nor of this one
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

}  // namespace spillway::um
