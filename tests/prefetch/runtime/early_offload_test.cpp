// Offloads that are copied while runs still read their block.

#include <gtest/gtest.h>

#include "tests/prefetch/runtime/copy_steps.h"

namespace spillway::prefetch {
namespace {

using namespace testing;

// A walker of one offload, whose block run 0 still reads.
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

}  // namespace
}  // namespace spillway::prefetch
