#include "prefetch/learned/replayer.h"

#include <gtest/gtest.h>

#include "tests/prefetch/learned/repeating_program.h"

namespace spillway::prefetch {
namespace {

using namespace testing;
using namespace std::chrono_literals;

// Blocks 0 and 1, two pages each, are read in turn for 100 ns in a budget of two pages: the plan
// fetches each before its task and lets it go after it.
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
  // Ends a command, and all that follow from it.
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
  // Only 101, used last, can still be near: it is sent to where it belongs between iterations.
  const PrefetchCommands settling = mark();
  EXPECT_EQ(text(settling), "far 101 ");
  EXPECT_EQ(replayer.near(), pages(2));
  const PrefetchCommands first = replayer.complete(settling[0].ticket);
  EXPECT_EQ(text(first), "near 100 ");
  EXPECT_EQ(first[0].size, pages(2));
  EXPECT_EQ(text(replayer.complete(first[0].ticket)), "");
  EXPECT_EQ(text(touch(0)), "");
  const PrefetchCommands exchange = touch(1);  // task 0 has ended: its room is wanted
  EXPECT_EQ(text(exchange), "far 100 ");
  // Block 1 has come by faults meanwhile: nothing is left to fetch.
  EXPECT_EQ(text(replayer.complete(exchange[0].ticket)), "");
  EXPECT_EQ(replayer.near(), pages(2));
  const PrefetchCommands last = mark();
  EXPECT_EQ(text(last), "far 101 ");
  EXPECT_EQ(text(replayer.complete(last[0].ticket)), "near 100 ");
  EXPECT_EQ(replayer.counters().hits, 2U);
  EXPECT_EQ(replayer.counters().late, 1U);
  EXPECT_EQ(replayer.counters().followed, 1U);
}

TEST_F(TwoBlocks, AreLeftAloneAfterTooManyMisses) {
  learn_and_begin();
  for (const PrefetchCommand& command : mark()) complete(command);
  static_cast<void>(touch(0));
  static_cast<void>(touch(0));  // a miss: one is allowed
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

}  // namespace
}  // namespace spillway::prefetch
