#include "prefetch/runtime/plan_walker.h"

#include <gtest/gtest.h>

#include <atomic>
#include <future>
#include <memory>

#include "prefetch/planners/capacity.h"
#include "tests/prefetch/runtime/manual_moves.h"
#include "tests/prefetch/toy.h"
#include "um/error.h"
#include "um/host/engine.h"

namespace spillway::prefetch {
namespace {

using namespace testing;
using namespace std::chrono_literals;

std::exception_ptr failure(const char* sentence) {
  return std::make_exception_ptr(um::Error{sentence});
}

// Two runs; two offloads after the first run; a prefetch after the first offload.
class PlanWalkerTest : public ::testing::Test {
 protected:
  PlanWalkerTest() {
    plan.runs = {{.task = TaskId{0}}, {.task = TaskId{1}, .after = {1, 1, 1}}};
    plan.offloads = {{.after = {.runs = 1}}, {.after = {.runs = 1}}};
    plan.prefetches = {{.after = {.runs = 1, .offloads = 1}}};
    walker = std::make_unique<PlanWalker>(
        plan,
        [this](std::uint32_t i, um::Completion done) { return out.issue(i, std::move(done)); },
        [this](std::uint32_t i, um::Completion done) { return in.issue(i, std::move(done)); });
    walker->begin_step();
  }
  static bool is_ready(const std::future<void>& future) {
    return future.wait_for(0s) == std::future_status::ready;
  }

  Plan plan;
  ManualMoves out;
  ManualMoves in;
  std::unique_ptr<PlanWalker> walker;
};

TEST_F(PlanWalkerTest, IssuesNothingBeforeItsConditionHolds) {
  EXPECT_TRUE(out.issued().empty());  // no run has ended
  walker->end_run();
  out.wait_until_issued(2);
  EXPECT_TRUE(in.issued().empty());  // no offload has ended
  out.finish_next();
  in.wait_until_issued(1);
  out.finish_next();
  in.finish_next();
  walker->wait_for(plan.runs[1].after);
  EXPECT_EQ(out.issued(), (std::vector<std::uint32_t>{0, 1}));
}

TEST_F(PlanWalkerTest, IssuesAtTheBeginningWhatWaitsForNothing) {
  plan.offloads[0].after = {};
  walker->begin_step();
  out.wait_until_issued(1);
  out.finish_next();
  walker->wait_for({.offloads = 1});
}

TEST_F(PlanWalkerTest, WaitForBlocksUntilTheStepHasComeThatFar) {
  walker->end_run();
  out.wait_until_issued(2);
  auto waiting = std::async(std::launch::async, [&] { walker->wait_for({.offloads = 2}); });
  out.finish_next();
  EXPECT_FALSE(is_ready(waiting));
  out.finish_next();
  waiting.get();
  in.wait_until_issued(1);
  in.finish_next();
}

TEST_F(PlanWalkerTest, EndStepWaitsForEveryMove) {
  walker->end_run();
  out.wait_until_issued(2);
  out.finish_next();
  out.finish_next();
  in.wait_until_issued(1);
  walker->end_run();
  auto ending = std::async(std::launch::async, [&] { walker->end_step(); });
  EXPECT_FALSE(is_ready(ending));
  in.finish_next();
  ending.get();
}

TEST_F(PlanWalkerTest, AFailedMoveMakesWaitForThrowWhatItFailedWith) {
  walker->end_run();
  out.wait_until_issued(2);
  out.finish_next(failure("the far file is full"));
  try {
    walker->wait_for({.prefetches = 1});
    FAIL() << "waited for a move after a failure";
  } catch (const um::Error& error) {
    EXPECT_STREQ(error.what(), "the far file is full");
  }
  out.finish_next();
  in.wait_until_issued(1);
  in.finish_next();
}

TEST_F(PlanWalkerTest, ItsEndWaitsForMovesUnderWay) {
  plan.prefetches.clear();
  walker->begin_step();
  walker->end_run();
  out.wait_until_issued(2);
  auto destruction = std::async(std::launch::async, [&] { walker.reset(); });
  out.finish_next();
  EXPECT_FALSE(is_ready(destruction));
  out.finish_next();
  destruction.get();
}

TEST_F(PlanWalkerTest, AMoveCountsOnceAllBeforeItHaveEnded) {
  plan.prefetches.clear();
  walker->begin_step();
  walker->end_run();
  out.wait_until_issued(2);
  out.finish_last();
  EXPECT_FALSE(walker->wait_for({.offloads = 1}, [] { return true; }));
  out.finish_next();
  EXPECT_TRUE(walker->wait_for({.offloads = 2}, [] { return false; }));
  const Timeline timeline = walker->moves();
  EXPECT_LE(timeline.offloads[0].end, timeline.offloads[1].begin);
  EXPECT_LE(timeline.offloads[1].begin, timeline.offloads[1].end);
}

TEST_F(PlanWalkerTest, TriesAgainAfterANudgeWhatCouldNotBeIssued) {
  out.refuse(true);
  walker->end_run();
  out.wait_until_refused();
  EXPECT_TRUE(out.issued().empty());
  out.refuse(false);
  walker->nudge();
  out.wait_until_issued(2);
  EXPECT_EQ(out.issued(), (std::vector<std::uint32_t>{0, 1}));
  out.finish_next();
  out.finish_next();
  in.wait_until_issued(1);
  in.finish_next();
}

TEST_F(PlanWalkerTest, ANudgeLetsAWaitBeInterrupted) {
  std::atomic<bool> interrupted = false;
  auto waiting = std::async(std::launch::async, [&] {
    return walker->wait_for({.offloads = 1}, [&] { return interrupted.load(); });
  });
  interrupted = true;
  walker->nudge();
  EXPECT_FALSE(waiting.get());
}

TEST_F(PlanWalkerTest, GivesIntervalsThatFollowEachOtherInADirection) {
  walker->end_run();
  out.wait_until_issued(2);  // both are issued before the first ends
  out.finish_next();
  out.finish_next();
  in.wait_until_issued(1);
  in.finish_next();
  walker->wait_for({.runs = 1, .offloads = 2, .prefetches = 1});
  const Timeline timeline = walker->moves();
  EXPECT_LE(timeline.offloads[0].begin, timeline.offloads[0].end);
  EXPECT_LE(timeline.offloads[0].end, timeline.offloads[1].begin);
  EXPECT_LE(timeline.offloads[1].begin, timeline.offloads[1].end);
  EXPECT_LE(timeline.offloads[0].end, timeline.prefetches[0].end);
}

// A whole plan on two copy engines: each entry starts only when the step has come as far as its
// condition says, counted independently of the walker.
TEST(PlanWalker, KeepsEveryConditionOfAPlan) {
  const TaskGraph graph = chain(12, pages(2));
  const Profile profile = flat_profile(graph, 100ns);
  const Plan plan = std::get<Plan>(Capacity{}.plan(problem(graph, profile, pages(12))));
  ASSERT_GT(plan.prefetches.size(), 4U);
  std::atomic<std::uint32_t> runs = 0;
  std::atomic<std::uint32_t> offloads = 0;
  std::atomic<std::uint32_t> prefetches = 0;
  std::atomic<int> broken = 0;
  const auto check = [&](const Progress& after) {
    if (!Progress{runs, offloads, prefetches}.reaches(after)) ++broken;
  };
  um::Engine out{"out"};
  um::Engine in{"in"};
  const auto issue_on = [&](um::Engine& engine, const std::vector<Move>& moves, auto& ended) {
    return [&](std::uint32_t i, um::Completion done) {
      check(moves[i].after);
      engine.enqueue([&ended, done = std::move(done)] {
        ++ended;
        done(nullptr);
      });
      return true;
    };
  };
  PlanWalker walker{plan, issue_on(out, plan.offloads, offloads),
                    issue_on(in, plan.prefetches, prefetches)};
  for (int step = 0; step < 50; ++step) {
    runs = offloads = prefetches = 0;
    walker.begin_step();
    for (const TaskRun& run : plan.runs) {
      walker.wait_for(run.after);
      check(run.after);
      ++runs;
      walker.end_run();
    }
    walker.end_step();
    EXPECT_EQ(offloads, plan.offloads.size());
    EXPECT_EQ(prefetches, plan.prefetches.size());
  }
  EXPECT_EQ(broken, 0);
}

}  // namespace
}  // namespace spillway::prefetch
