#include <gtest/gtest.h>

#include <atomic>
#include <exception>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "prefetch/runtime/plan_walker.h"
#include "tests/prefetch/runtime/copy_steps.h"
#include "tests/prefetch/runtime/manual_moves.h"
#include "tests/sleeping_threads.h"
#include "um/error.h"

// A step has ended when the last of its runs and moves has, whichever that is.

namespace spillway::prefetch {
namespace {

using Last = std::string;

class StepEnd : public ::testing::TestWithParam<Last> {
 protected:
  // One run, and a move of each direction.
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
