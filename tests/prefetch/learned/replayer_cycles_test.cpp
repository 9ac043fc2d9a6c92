// Programs whose iterations hand content on: arrays that are swapped, state that is allocated anew
// before the old one is freed, buffers that the first iteration leaves behind.
#include <gtest/gtest.h>

#include <cstdint>
#include <set>
#include <variant>
#include <vector>

#include "prefetch/learned/replayer.h"
#include "tests/prefetch/learned/repeating_program.h"

namespace spillway::prefetch {
namespace {

using namespace testing;
using namespace std::chrono_literals;
using um::Access;

// A program by hand, whose moves end at once.
class Carrying : public ::testing::Test {
 protected:
  void touch(std::uint64_t block, std::uint64_t size, Access access) {
    now_ += 100ns;
    end(replayer.touch({.block = block, .size = pages(size), .access = access, .at = now_}));
  }
  // The end of an iteration. Learns when it can.
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

  // A sweep over six pages from one array to another, by parts of two pages: 10 … and 20 …
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
  // A new state is made of the old one, with two weights.
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
  sweep(10, 20);  // the replay plan begins where its cycle does
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
  for (int i = 0; i < 5; ++i) advance_state();  // the first one is of before the first mark
  EXPECT_EQ(cycle, 2U);
  // Two weights, and the states by turns: all keep their content from cycle to cycle.
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
  // Allocated in iteration 1, old in iteration 5: 5 and 6 agree, 7 is idle, 8 is followed.
  EXPECT_EQ(cycle, 1U);
  EXPECT_EQ(replayer.counters().recorded, 6U);
  EXPECT_EQ(replayer.counters().followed, 1U);
}

TEST_F(Carrying, ABlockMayOutliveItsSuccessorsBirth) {
  mark();
  for (int i = 0; i < 8; ++i) advance_state();
  ASSERT_TRUE(is_following(replayer));
  // Two states are kept for good: their names go to later ones.
  bool has_let_go = false;
  for (int i = 0; i < 4; ++i) {
    touch(state_ - 1, 2, Access::kRead);  // whose name the next one gets
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
