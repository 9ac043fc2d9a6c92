#pragma once

#include <gtest/gtest.h>

#include <exception>
#include <future>
#include <thread>
#include <utility>

#include "tests/um/managed_space_fixture.h"
#include "um/error.h"

// The contract of managed memory: what is discarded.

namespace spillway::um {

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
  EXPECT_EQ(space->word(0), 0U);  // by a page fault: it has no content
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
  space->ledger().charge(2 * space->page());  // by somebody else
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
  space->use(1, 1, Access::kRead, [&] {  // page 0 is gone, and page 1 is waited for
    space->far().holds_reads = false;
    EXPECT_EQ(moved.get_future().get(), nullptr);
    discarder.join();
    EXPECT_EQ(space->word(1), 5U);
  });
  space->move(1, 1, MemoryTier::kFar);
  EXPECT_EQ(space->pages_in_use(), 0U);
}

}  // namespace spillway::um
