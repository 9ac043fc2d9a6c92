// Offloads that are copied while runs still read their block.
#include "prefetch/runtime/plan_walker.h"

#include <gtest/gtest.h>

#include <atomic>
#include <exception>
#include <functional>
#include <future>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "tests/prefetch/planned.h"
#include "tests/prefetch/runtime/copy_steps.h"
#include "tests/prefetch/runtime/manual_moves.h"
#include "tests/prefetch/toy.h"
#include "tests/sleeping_threads.h"
#include "um/error.h"
#include "um/threads/engine.h"

// A step ends with the last of its runs and moves, in any order.

namespace spillway::prefetch {
namespace {

using namespace testing;
using namespace std::chrono_literals;

std::exception_ptr failure(const char* sentence) {
  return std::make_exception_ptr(um::Error{sentence});
}

// Waits for `after` on a separate thread.
class Waiter {
 public:
  Waiter(PlanWalker& walker, Progress after, std::function<bool()> interrupted)
      : reached_{std::async(std::launch::async,
                            [this, &walker, after, interrupted = std::move(interrupted)] {
                              const bool reached = walker.wait_for(after, [&] {
                                note(true);
                                return interrupted();
                              });
                              note(false);
                              return reached;
                            })} {}

  // Blocks until the thread has checked once; returns whether it then had to wait.
  [[nodiscard]] bool had_to_wait() { return first_look_.get_future().get(); }
  // Returns the result of wait_for().
  [[nodiscard]] bool reached() { return reached_.get(); }

 private:
  void note(bool waits) {
    if (!has_looked_.exchange(true)) first_look_.set_value(waits);
  }
  std::atomic<bool> has_looked_ = false;
  std::promise<bool> first_look_;
  std::future<bool> reached_;  // last: its thread uses the other members
};

bool never() { return false; }

// Two runs; two offloads after the first run; a prefetch after the first offload. A test may change
// the plan before it starts.
class PlanWalkerTest : public ::testing::Test {
 protected:
  PlanWalkerTest() {
    plan.runs = {{.task = TaskId{0}}, {.task = TaskId{1}, .after = {1, 1, 1}}};
    plan.offloads = {{.after = {.runs = 1}}, {.after = {.runs = 1}}};
    plan.prefetches = {{.after = {.runs = 1, .offloads = 1}}};
  }
  void start() {
    walker = std::make_unique<PlanWalker>(
        plan,
        [this](std::uint32_t i, um::Completion done) { return out.issue(i, std::move(done)); },
        [this](std::uint32_t i, um::Completion done) { return in.issue(i, std::move(done)); });
    walker->begin_step();
  }
  // Ends the prefetch in flight from another thread while `blocking` is called. Returns whether
  // `blocking` returned only afterwards.
  bool waits_for_a_prefetch(const std::function<void()>& blocking) {
    std::atomic<bool> has_ended = false;
    std::promise<void> is_on_its_way;
    auto ending = std::async(std::launch::async, [&] {
      is_on_its_way.get_future().wait();
      has_ended = true;
      in.finish_next();
    });
    is_on_its_way.set_value();
    blocking();
    const bool result = has_ended;
    ending.get();
    return result;
  }

  Plan plan;
  ManualMoves out;
  ManualMoves in;
  std::unique_ptr<PlanWalker> walker;
};

TEST_F(PlanWalkerTest, IssuesNothingBeforeItsConditionHolds) {
  plan.prefetches.insert(plan.prefetches.begin(), Move{});  // waits for nothing
  start();
  in.wait_until_issued(1);            // an offload is tried before each prefetch
  EXPECT_TRUE(out.issued().empty());  // no run has ended
  walker->end_run();
  out.wait_until_issued(2);           // between the two offloads the second prefetch is tried
  EXPECT_EQ(in.issued().size(), 1U);  // no offload has ended
  out.finish_next();
  in.wait_until_issued(2);
  out.finish_next();
  in.finish_next();
  in.finish_next();
  walker->wait_for({1, 2, 2});
  EXPECT_EQ(out.issued(), (std::vector<std::uint32_t>{0, 1}));
}

TEST_F(PlanWalkerTest, IssuesAtTheBeginningWhatWaitsForNothing) {
  plan.offloads[0].after = {};
  start();
  out.wait_until_issued(1);
  out.finish_next();
  walker->wait_for({.offloads = 1});
}

TEST_F(PlanWalkerTest, WaitForBlocksUntilTheStepHasComeThatFar) {
  plan.prefetches.clear();
  start();
  walker->end_run();
  out.wait_until_issued(2);
  out.finish_next();
  Waiter waiter{*walker, {.offloads = 2}, never};
  EXPECT_TRUE(waiter.had_to_wait());
  out.finish_next();
  EXPECT_TRUE(waiter.reached());
}

TEST_F(PlanWalkerTest, EndStepWaitsForEveryMove) {
  start();
  walker->end_run();
  out.wait_until_issued(2);
  out.finish_next();
  out.finish_next();
  in.wait_until_issued(1);
  walker->end_run();
  EXPECT_TRUE(waits_for_a_prefetch([&] { walker->end_step(); }));
}

TEST_F(PlanWalkerTest, AFailedMoveMakesWaitForThrowWhatItFailedWith) {
  start();
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

TEST_F(PlanWalkerTest, AMoveThatCannotEvenStartHasFailed) {
  PlanWalker throwing{
      plan, [](std::uint32_t, const um::Completion&) -> bool { throw um::Error{"no room for it"}; },
      [this](std::uint32_t i, um::Completion done) { return in.issue(i, std::move(done)); }};
  throwing.begin_step();
  throwing.end_run();
  try {
    throwing.wait_for({.offloads = 1});
    FAIL() << "waited for a move that was never issued";
  } catch (const um::Error& error) {
    EXPECT_STREQ(error.what(), "no room for it");
  }
  in.wait_until_issued(1);
  in.finish_next();  // the walker's destructor waits for nothing else
}

TEST_F(PlanWalkerTest, ItsEndWaitsForMovesUnderWay) {
  plan.offloads.clear();
  plan.prefetches = {Move{}};
  start();
  in.wait_until_issued(1);
  EXPECT_TRUE(waits_for_a_prefetch([&] { walker.reset(); }));
}

TEST_F(PlanWalkerTest, AMoveCountsOnceAllBeforeItHaveEnded) {
  plan.prefetches.clear();
  start();
  walker->end_run();
  out.wait_until_issued(2);
  out.finish_last();
  EXPECT_FALSE(walker->wait_for({.offloads = 1}, [] { return true; }));
  out.finish_next();
  EXPECT_TRUE(walker->wait_for({.offloads = 2}, never));
  const Timeline timeline = walker->moves();
  EXPECT_LE(timeline.offloads[0].end, timeline.offloads[1].begin);
  EXPECT_LE(timeline.offloads[1].begin, timeline.offloads[1].end);
}

// The offload is tried only once, at the beginning of the step, since no event precedes the nudge.
TEST_F(PlanWalkerTest, TriesAgainAfterANudgeWhatCouldNotBeIssued) {
  plan.offloads = {Move{}};
  plan.prefetches.clear();
  out.refuse(true);
  start();
  out.wait_until_refused();
  EXPECT_TRUE(out.issued().empty());
  out.refuse(false);
  walker->nudge();
  out.wait_until_issued(1);
  out.finish_next();
  walker->wait_for({.offloads = 1});
}

// The arena is stuck in an issue, so only the nudge can wake the waiting thread.
TEST_F(PlanWalkerTest, ANudgeLetsAWaitBeInterrupted) {
  plan.offloads = {Move{}};
  std::promise<void> is_issuing;
  std::promise<void> may_go_on;
  PlanWalker hanging{plan,
                     [&](std::uint32_t, const um::Completion& done) {
                       is_issuing.set_value();
                       may_go_on.get_future().wait();
                       done(nullptr);
                       return true;
                     },
                     [](std::uint32_t, const um::Completion&) { return false; }};
  hanging.begin_step();
  is_issuing.get_future().wait();
  std::atomic<bool> interrupted = false;
  Waiter waiter{hanging, {.offloads = 1}, [&] { return interrupted.load(); }};
  EXPECT_TRUE(waiter.had_to_wait());
  interrupted = true;
  hanging.nudge();
  EXPECT_FALSE(waiter.reached());
  may_go_on.set_value();
}

TEST_F(PlanWalkerTest, GivesIntervalsThatFollowEachOtherInADirection) {
  start();
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

// A whole plan on two copy engines: each entry starts only when its condition holds, counted
// independently of the walker.
TEST(PlanWalker, KeepsEveryConditionOfAPlan) {
  const TaskGraph graph = chain(12, pages(2));
  const Profile profile = flat_profile(graph, 100ns);
  const Plan plan = planned("fractional", problem(graph, profile, pages(12)));
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

// A walker of one offload of a block that run 0 still reads.
class ReadBlock : public ::testing::Test {
 protected:
  ReadBlock() {
    plan.runs = {{.task = TaskId{0}}};
    plan.offloads = {{.free_after = 1}};
  }
  Plan plan;
  ManualMoves out;
};

TEST_F(ReadBlock, IsCopiedBesideItsReadersAndCountsAfterThem) {
  PlanWalker walker{
      plan,
      [&](std::uint32_t i, um::Completion done) { return out.issue(i, std::move(done)); },
      {},
      /*copies_while_read=*/true};
  walker.begin_step();
  out.wait_and_finish_next();  // no run has ended
  EXPECT_FALSE(walker.wait_for({.offloads = 1}, [] { return true; }));
  walker.end_run();
  walker.end_step();
}

TEST_F(ReadBlock, DoesNotHoldUpTheEndOfAStepThatFailed) {
  PlanWalker walker{
      plan,
      [&](std::uint32_t i, um::Completion done) { return out.issue(i, std::move(done)); },
      {},
      /*copies_while_read=*/true};
  walker.begin_step();
  out.wait_and_finish_next();
}

// Run 1 reads a, which is copied out beside it: its room is free when both have ended.
TEST(CopyMemory, CopiesABlockBesideItsLastReader) {
  const TaskGraph graph =
      toy_graph("a:1 b:1 c:2", "a = make a(); b = read a(a); c = make c(b); use a(a, b)");
  const DataId a{0};
  Plan plan = plain_plan(graph, pages(3));
  plan.offloads = {{.data = a, .size = pages(1), .after = {.runs = 1}, .free_after = 2}};
  plan.prefetches = {{.data = a, .size = pages(1), .after = {.runs = 3, .offloads = 1}}};
  plan.runs[2].after = {2, 1, 0};
  plan.runs[3].after = {3, 1, 1};
  ASSERT_NO_FATAL_FAILURE(expect_verified(graph, plan));
  ManualStep step{graph, plan};
  step.run(0);
  step.memory.begin_run(1);
  const std::byte* const place = step.memory.address(a);
  step.copies.out.wait_and_finish_next();
  EXPECT_EQ(step.memory.address(a), place);
  EXPECT_EQ(step.stage.ledger.in_use(), pages(2));
  step.memory.end_run(1);
  EXPECT_EQ(step.stage.ledger.in_use(), pages(1));
  step.run(2);
  step.copies.in.wait_and_finish_next();
  step.run(3);
  step.memory.end_step();
}

using Last = std::string;

class StepEnd : public ::testing::TestWithParam<Last> {
 protected:
  // One run, and one move in each direction.
  StepEnd() {
    plan_.runs = {{.task = TaskId{0}}};
    plan_.offloads = {{}};
    plan_.prefetches = {{}};
  }
  void end(const Last& part) {
    if (part == "run") walker_.end_run();
    if (part == "offload") out_.wait_and_finish_next();
    if (part == "prefetch") in_.wait_and_finish_next();
  }

  Plan plan_;
  testing::ManualMoves out_;
  testing::ManualMoves in_;
  PlanWalker walker_{
      plan_,
      [this](std::uint32_t i, um::Completion done) { return out_.issue(i, std::move(done)); },
      [this](std::uint32_t i, um::Completion done) { return in_.issue(i, std::move(done)); }};
};

TEST_P(StepEnd, WaitsForEverythingAndForThisLast) {
  walker_.begin_step();
  std::atomic<bool> has_ended = false;
  std::thread waiting{[&] {
    walker_.end_step();
    has_ended = true;
  }};
  for (const Last part : {"run", "offload", "prefetch"}) {
    if (part != GetParam()) end(part);
  }
  while (!test::all_others_sleep()) std::this_thread::yield();
  EXPECT_FALSE(has_ended);
  end(GetParam());
  waiting.join();
}

TEST(CopyMemory, EndsTheStepWithWhatItsLastRunFailedWith) {
  const TaskGraph graph = testing::toy_graph("a:1", "a = make a()");
  const Plan plan = testing::plain_plan(graph, testing::pages(1));
  testing::ManualStep step{graph, plan};
  step.memory.begin_run(0);
  step.memory.fail(std::make_exception_ptr(um::Error{"cannot launch"}));
  EXPECT_THROW(step.memory.end_step(), um::Error);
}

INSTANTIATE_TEST_SUITE_P(EachPart, StepEnd, ::testing::Values("run", "offload", "prefetch"),
                         [](const auto& last) { return last.param; });

}  // namespace
}  // namespace spillway::prefetch
