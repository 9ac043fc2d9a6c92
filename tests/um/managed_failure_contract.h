#pragma once

#include <gtest/gtest.h>

#include <cstddef>

#include "tests/um/managed_space_fixture.h"
#include "um/error.h"

// The contract of managed memory: far memory that fails. Hints then leave content where it is; a
// fault in a launch lets it go on to its check(), and any other fault ends the process.

namespace spillway::um {

/// A managed space whose far memory fails when the test says.
class ManagedFailureContract : public ManagedSpaceContract {
 protected:
  /// Page 0 of four has 5 in its first and last word, and is far. All could be near.
  void make_with_far_page() {
    make(options(4, 4));
    space->write(0, 5);
    space->move(0, 1, MemoryTier::kFar);
  }
  /// Four pages, of which two may be near, whose writes are not declared.
  void make_undeclared() {
    ManagedOptions undeclared = options(4, 2);
    undeclared.writes_are_declared = false;
    make(undeclared);
  }
};

/// What faults in a launch do: far memory that fails throws in their handler.
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
  EXPECT_THROW(space->write(2, 5), Error);  // and every later one
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
  EXPECT_EQ(space->word(0), 0U);  // the thread goes on, with zeros
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

// Page 0 cannot be saved when page 2 wants its room, and becomes the one used last: page 1 goes
// without being saved.
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
