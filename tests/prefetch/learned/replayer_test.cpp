// Programs with content that passes from one iteration to the next: swapped arrays, state that is
// allocated before the old state is freed, and buffers that the first iteration leaves behind.
#include "prefetch/learned/replayer.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <set>
#include <variant>
#include <vector>

#include "tests/prefetch/learned/repeating_program.h"

namespace spillway::prefetch {
namespace {

using namespace testing;
using namespace std::chrono_literals;

// Blocks 0 and 1, two pages each, are read alternately for 100 ns in a budget of two pages: the
// plan fetches each before its task and frees it afterwards.
class TwoBlocks : public ::testing::Test {
 protected:
  using PrefetchCommands = std::vector<PrefetchCommand>;

  PrefetchCommands touch(std::size_t block) {
    now_ += 100ns;
    return replayer.touch(
        {.block = 100 + block, .size = pages(2), .access = um::Access::kRead, .at = now_});
  }
  PrefetchCommands mark() {
    now_ += 100ns;
    return replayer.mark(now_);
  }
  void iterate() {
    for (const PrefetchCommand& command : touch(0)) complete(command);
    for (const PrefetchCommand& command : touch(1)) complete(command);
    for (const PrefetchCommand& command : mark()) complete(command);
  }
  // Completes a command, and all commands that follow from it.
  void complete(const PrefetchCommand& command) {
    for (const PrefetchCommand& next : replayer.complete(command.ticket)) complete(next);
  }
  void learn_it() {
    ASSERT_TRUE(replayer.is_ready());
    replayer.load(learn(replayer.recorded(),
                        {.budget = pages(2), .page = kPage, .link = toy_link(), .together = 5ns}));
  }
  void learn_and_begin() {
    static_cast<void>(mark());
    iterate();
    iterate();
    learn_it();
    static_cast<void>(touch(0));
    static_cast<void>(touch(1));
  }
  static std::string text(const PrefetchCommands& commands) {
    std::string result;
    for (const PrefetchCommand& command : commands) {
      result += command.to == um::MemoryTier::kNear ? "near " : "far ";
      result += std::to_string(command.block) + " ";
    }
    return result;
  }

  Program program = stream(2, pages(2), um::Access::kRead, 100ns);
  Replayer replayer{{.max_misses = 1, .relearn_after = 2, .retry_after = 2}};
  um::Nanoseconds now_{0};
};

TEST_F(TwoBlocks, AreLearnedOnceTwoIterationsAgree) {
  EXPECT_EQ(text(mark()), "");
  iterate();
  EXPECT_FALSE(replayer.is_ready());
  iterate();
  EXPECT_TRUE(replayer.is_ready());
  EXPECT_EQ(replayer.recorded().iterations.size(), 2U);
  learn_it();
  EXPECT_FALSE(is_following(replayer));
  iterate();
  EXPECT_TRUE(is_following(replayer));
  EXPECT_EQ(replayer.counters().recorded, 2U);
  EXPECT_EQ(replayer.counters().idle, 1U);
}

TEST_F(TwoBlocks, AreMovedAheadOfTheirTouches) {
  learn_and_begin();
  // Only 101, used last, can still be near: it is sent to its home between iterations.
  const PrefetchCommands settling = mark();
  EXPECT_EQ(text(settling), "far 101 ");
  EXPECT_EQ(replayer.near(), pages(2));
  const PrefetchCommands first = replayer.complete(settling[0].ticket);
  EXPECT_EQ(text(first), "near 100 ");
  EXPECT_EQ(first[0].size, pages(2));
  EXPECT_EQ(text(replayer.complete(first[0].ticket)), "");
  EXPECT_EQ(text(touch(0)), "");
  const PrefetchCommands exchange = touch(1);  // task 0 has ended: its room is needed
  EXPECT_EQ(text(exchange), "far 100 ");
  // Block 1 has come by faults meanwhile: nothing needs to be fetched.
  EXPECT_EQ(text(replayer.complete(exchange[0].ticket)), "");
  EXPECT_EQ(replayer.near(), pages(2));
  const PrefetchCommands last = mark();
  EXPECT_EQ(text(last), "far 101 ");
  EXPECT_EQ(text(replayer.complete(last[0].ticket)), "near 100 ");
  EXPECT_EQ(replayer.counters().hits, 2U);
  EXPECT_EQ(replayer.counters().late, 1U);
  EXPECT_EQ(replayer.counters().followed, 1U);
}

TEST_F(TwoBlocks, AreMissedInAnotherSize) {
  learn_and_begin();
  for (const PrefetchCommand& command : mark()) complete(command);
  static_cast<void>(replayer.touch(
      {.block = 100, .size = pages(1), .access = um::Access::kRead, .at = now_ + 100ns}));
  EXPECT_EQ(replayer.counters().misses, 1U);
}

TEST_F(TwoBlocks, AreLeftAloneAfterTooManyMisses) {
  learn_and_begin();
  for (const PrefetchCommand& command : mark()) complete(command);
  static_cast<void>(touch(0));
  static_cast<void>(touch(0));  // a miss; one is allowed
  EXPECT_TRUE(is_following(replayer));
  static_cast<void>(touch(0));
  EXPECT_FALSE(is_following(replayer));
  EXPECT_EQ(text(touch(1)), "");
  const ReplayerCounters& counters = replayer.counters();
  EXPECT_EQ(counters.hits, 1U);
  EXPECT_EQ(counters.misses, 2U);
  EXPECT_EQ(counters.unguided, 7U);  // six before the replay plan was followed
  for (const PrefetchCommand& command : mark()) complete(command);
  EXPECT_EQ(counters.abandoned, 1U);
  EXPECT_TRUE(is_following(replayer));
  iterate();
  EXPECT_EQ(counters.followed, 1U);
}

TEST_F(TwoBlocks, AreLearnedAnewWhenThePatternChanges) {
  learn_and_begin();
  for (const PrefetchCommand& command : mark()) complete(command);
  for (int i = 0; i < 2; ++i) {
    for (int j = 0; j < 3; ++j) static_cast<void>(touch(0));
    for (const PrefetchCommand& command : mark()) complete(command);
  }
  EXPECT_FALSE(is_following(replayer));
  EXPECT_EQ(replayer.counters().abandoned, 2U);
  iterate();
  iterate();
  EXPECT_TRUE(replayer.is_ready());
}

TEST_F(TwoBlocks, ArePausedAfterAReplayPlanThatFailed) {
  static_cast<void>(mark());
  iterate();
  iterate();
  replayer.load(NotLearned{"because"});
  EXPECT_EQ(replayer.description(), "not learned, another try in 2 iterations: because");
  iterate();
  iterate();
  EXPECT_EQ(replayer.counters().recorded, 2U);
  iterate();
  iterate();
  EXPECT_TRUE(replayer.is_ready());
}

TEST(Replayer, SaysThatAnIterationIsTooLong) {
  Replayer replayer{{.max_events = 1}};
  static_cast<void>(replayer.mark(0ns));
  for (int i = 0; i < 2; ++i) static_cast<void>(replayer.touch({.size = pages(1)}));
  static_cast<void>(replayer.mark(1ns));
  EXPECT_TRUE(replayer.description().ends_with(
      ": the iteration has more than 1 allocations, frees and touches"))
      << replayer.description();
}

using um::Access;

// A hand-written program with moves that end at once.
class Carrying : public ::testing::Test {
 protected:
  void touch(std::uint64_t block, std::uint64_t size, Access access) {
    now_ += 100ns;
    end(replayer.touch({.block = block, .size = pages(size), .access = access, .at = now_}));
  }
  // Ends an iteration. Learns when possible.
  void mark() {
    now_ += 100ns;
    end(replayer.mark(now_));
    if (!replayer.is_ready()) return;
    cycle = replayer.recorded().cycle;
    auto result = learn(replayer.recorded(),
                        {.budget = pages(6), .page = kPage, .link = toy_link(), .together = 5ns});
    if (const auto* replay_plan = std::get_if<ReplayPlan>(&result)) step = replay_plan->step;
    replayer.load(std::move(result));
  }
  void end(const std::vector<PrefetchCommand>& commands) {
    for (const PrefetchCommand& command : commands) {
      ordered.insert(command.block);
      end(replayer.complete(command.ticket));
    }
  }

  // Sweeps over six pages from one array to another, in parts of two pages: 10 … and 20 …
  void sweep(std::uint64_t from, std::uint64_t to) {
    for (std::uint64_t i = 0; i < 3; ++i) {
      touch(from + i, 2, Access::kRead);
      touch(to + i, 2, Access::kReadWrite);
    }
    mark();
  }
  void sweep_to_and_fro(int times) {
    for (int i = 0; i < times; ++i) {
      sweep(10, 20);
      sweep(20, 10);
    }
  }
  // Makes a new state from the old one, with two weights.
  void advance_state() {
    touch(10, 2, Access::kRead);
    touch(11, 2, Access::kRead);
    const std::uint64_t old = state_++;
    replayer.allocate(state_, pages(2));
    touch(old, 2, Access::kRead);
    touch(state_, 2, Access::kReadWrite);
    end(replayer.free(old));
    mark();
  }

  Replayer replayer{{.max_misses = 1}};
  std::size_t cycle = 0;
  LearnedStep step;
  std::set<std::uint64_t> ordered;
  std::uint64_t state_ = 1000;
  um::Nanoseconds now_{0};
};

TEST_F(Carrying, SwappedArraysHaveACycleOfTwo) {
  mark();
  sweep_to_and_fro(2);
  EXPECT_EQ(cycle, 2U);
  EXPECT_EQ(step.ends, (std::vector<std::size_t>{6, 12}));
  sweep(10, 20);  // following begins where the plan's cycle begins
  EXPECT_FALSE(is_following(replayer));
  sweep(20, 10);
  EXPECT_TRUE(is_following(replayer));
  sweep_to_and_fro(3);
  EXPECT_EQ(replayer.counters().followed, 6U);
  EXPECT_EQ(replayer.counters().hits, 36U);
  EXPECT_EQ(replayer.counters().misses, 0U);
  EXPECT_GT(replayer.counters().prefetches, 0U);
}

TEST_F(Carrying, AnExtraSweepIsLearnedAnew) {
  mark();
  sweep_to_and_fro(3);
  ASSERT_TRUE(is_following(replayer));
  sweep(20, 10);
  sweep_to_and_fro(6);
  EXPECT_EQ(replayer.counters().replay_plans, 2U);
  EXPECT_TRUE(is_following(replayer));
  EXPECT_GE(replayer.counters().abandoned, 4U);
  EXPECT_GE(replayer.counters().followed, 1U);
}

TEST_F(Carrying, StateThatIsAllocatedBeforeTheOldOneIsFreedHasACycleOfTwo) {
  mark();
  for (int i = 0; i < 5; ++i) advance_state();  // the first state is from before the first mark
  EXPECT_EQ(cycle, 2U);
  // Two weights, and the two states alternately: all keep their content across cycles.
  ASSERT_EQ(step.graph.data.size(), 4U);
  for (const DataBlock& block : step.graph.data) {
    EXPECT_EQ(block.kind, DataKind::kState);
    EXPECT_TRUE(block.is_offloadable);
  }
  for (int i = 0; i < 2; ++i) advance_state();
  ASSERT_TRUE(is_following(replayer));
  const auto touches = replayer.counters().touches;
  for (int i = 0; i < 6; ++i) advance_state();
  EXPECT_EQ(replayer.counters().touches - touches, 24U);
  EXPECT_GE(replayer.counters().hits, 24U);
  EXPECT_EQ(replayer.counters().misses, 0U);
  EXPECT_GT(replayer.counters().prefetches, 0U);
}

TEST_F(Carrying, OrdersNameTheBlockThatLivesNow) {
  mark();
  for (int i = 0; i < 20; ++i) {
    ordered.clear();
    const std::uint64_t old = state_;
    advance_state();
    for (const std::uint64_t block : ordered) {
      EXPECT_TRUE(block < 100 || block == old || block == state_) << block;
    }
  }
  EXPECT_GE(replayer.counters().followed, 10U);
}

TEST_F(Carrying, WhatTheFirstIterationLeavesBehindIsLearnedOnceItIsOld) {
  mark();
  for (std::uint64_t i = 0; i < 4; ++i) replayer.allocate(10 + i, pages(2));
  for (int i = 0; i < 8; ++i) {
    for (std::uint64_t block = 10; block < 14; ++block) touch(block, 2, Access::kReadWrite);
    mark();
  }
  // Allocated in iteration 1, permanent in iteration 5: 5 and 6 agree, 7 is idle, 8 is followed.
  EXPECT_EQ(cycle, 1U);
  EXPECT_EQ(replayer.counters().recorded, 6U);
  EXPECT_EQ(replayer.counters().followed, 1U);
}

TEST_F(Carrying, ABlockMayOutliveItsSuccessorsBirth) {
  mark();
  for (int i = 0; i < 8; ++i) advance_state();
  ASSERT_TRUE(is_following(replayer));
  // Two states are kept for ever: their names pass to later ones.
  bool has_let_go = false;
  for (int i = 0; i < 4; ++i) {
    touch(state_ - 1, 2, Access::kRead);  // the next one gets this block's name
    const um::Bytes before = replayer.near();
    replayer.allocate(++state_, pages(2));
    has_let_go = has_let_go || replayer.near() < before;
    touch(state_, 2, Access::kReadWrite);
    mark();
  }
  EXPECT_TRUE(has_let_go);
  for (std::uint64_t kept = state_ - 3; kept < state_; ++kept) end(replayer.free(kept));
  for (int i = 0; i < 12; ++i) advance_state();
  EXPECT_TRUE(is_following(replayer));
}

}  // namespace
}  // namespace spillway::prefetch
