#include "prefetch/runtime/copy_memory.h"

#include <gtest/gtest.h>

#include "tests/prefetch/runtime/copy_steps.h"
#include "um/error.h"

namespace spillway::prefetch {
namespace {

using namespace testing;
using namespace std::chrono_literals;

// a is written, leaves, and comes back.
class SwappedBlock : public ::testing::Test {
 protected:
  SwappedBlock() {
    const DataId a{0};
    plan = plain_plan(graph, pages(1));
    plan.offloads = {{.data = a, .size = pages(1), .after = {.runs = 1}}};
    plan.prefetches = {{.data = a, .size = pages(1), .after = {.runs = 2, .offloads = 1}}};
    plan.runs[1].after = {1, 1, 0};
    plan.runs[2].after = {2, 1, 1};
  }
  TaskGraph graph = toy_graph("a:1 b:1", "a = make a(); b = make b(); a = use a(a)");
  Plan plan;
  std::vector<std::uint64_t> near = std::vector<std::uint64_t>(kPage.count() / 8 * 4);
  um::Range near_bytes = std::as_writable_bytes(std::span{near});
};

TEST_F(SwappedBlock, FreesItsRoomOnlyWhenTheCopyHasEnded) {
  Stage stage{graph, plan};
  ManualCopies copies;
  CopyMemory memory{stage.layout, stage.pinned, near_bytes, copies, stage.ledger};
  memory.begin_step();
  memory.begin_run(0);
  memory.end_run(0);
  copies.out.wait_until_issued(1);
  EXPECT_EQ(stage.ledger.in_use(), pages(1));
  copies.out.finish_next();
  EXPECT_EQ(stage.ledger.in_use(), 0_B);
  memory.begin_run(1);
  EXPECT_EQ(stage.ledger.in_use(), pages(1));
}

TEST_F(SwappedBlock, AFailedCopyComesOutOfBeginRun) {
  Stage stage{graph, plan};
  ManualCopies copies;
  CopyMemory memory{stage.layout, stage.pinned, near_bytes, copies, stage.ledger};
  memory.begin_step();
  memory.begin_run(0);
  memory.end_run(0);
  copies.out.wait_until_issued(1);
  copies.out.finish_next(std::make_exception_ptr(um::Error{"no space left on the far file"}));
  EXPECT_THROW(memory.begin_run(1), um::Error);
}

// a has two pages and so has the budget; b takes one of them and somebody else the other. When a is
// to come back, one is taken: that ends the step with a sentence, not the process.
TEST_F(SwappedBlock, APrefetchBeyondTheBudgetFailsTheStep) {
  graph.data[0].size = plan.offloads[0].size = plan.prefetches[0].size = plan.budget = pages(2);
  ManualStep step{graph, plan};
  step.run(0);
  step.copies.out.wait_and_finish_next();
  step.memory.begin_run(1);
  step.stage.ledger.charge(pages(1));
  step.memory.end_run(1);
  EXPECT_THROW(step.memory.begin_run(2), um::OutOfMemory);
}

TEST_F(SwappedBlock, RefusesAPlanThatMovesPartsOfBlocks) {
  graph.data[0].size = pages(2);
  Stage stage{graph, plan};
  ManualCopies copies;
  EXPECT_THROW((CopyMemory{stage.layout, stage.pinned, near_bytes, copies, stage.ledger}),
               um::ContractError);
}

// Freeing a block whose far copy is still valid takes no time, but it must not overtake the copy
// that was issued before it: a, the second offload, is still under way when b, the third, is freed.
// That the copy of c, the fourth, has been issued shows that b was freed before.
TEST(CopyMemory, ACleanOffloadDoesNotCountForTheCopyBeforeIt) {
  const TaskGraph graph = toy_graph("a:1 b:1 c:1",
                                    "b = make b(); wait(); use b(b); a, c = make a c(); "
                                    "wait again(); use all(a, b, c)");
  const DataId a{0};
  const DataId b{1};
  const DataId c{2};
  Plan plan = plain_plan(graph, pages(3));
  const auto move = [](DataId id, Progress after, bool is_clean = false) {
    return Move{.data = id, .size = pages(1), .is_clean = is_clean, .after = after};
  };
  plan.offloads = {move(b, {1, 0, 0}), move(a, {4, 1, 1}), move(b, {4, 1, 1}, true),
                   move(c, {4, 1, 1})};
  plan.prefetches = {move(b, {2, 1, 0}), move(a, {5, 4, 1}), move(b, {5, 4, 1}),
                     move(c, {5, 4, 1})};
  plan.runs[2].after = {2, 1, 1};
  plan.runs[4].after = {4, 2, 1};
  plan.runs[5].after = {5, 4, 4};
  ASSERT_NO_FATAL_FAILURE(expect_verified(graph, plan));
  ManualStep step{graph, plan};
  step.run(0);
  step.copies.out.wait_and_finish_next();
  step.run(1);
  step.copies.in.wait_and_finish_next();
  step.run(2);
  step.run(3);
  step.copies.out.wait_until_issued(3);  // the first copy of b, and those of a and c
  EXPECT_EQ(step.memory.moves().offloads[2].end, 0ns);
  step.copies.out.finish_next();
  step.run(4);  // counts on the room of a
  EXPECT_GT(step.memory.moves().offloads[2].end, 0ns);
  step.copies.out.finish_next();
  for (int i = 0; i < 3; ++i) step.copies.in.wait_and_finish_next();
}

}  // namespace
}  // namespace spillway::prefetch
