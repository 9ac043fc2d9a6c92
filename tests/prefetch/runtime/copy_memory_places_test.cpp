// The copy mode where the step fits at fixed places.
#include <gtest/gtest.h>

#include "prefetch/runtime/copy_memory.h"
#include "tests/prefetch/runtime/copy_steps.h"

namespace spillway::prefetch {
namespace {

using namespace testing;

TEST(FixedPlaces, LeaveRoomInOnePieceForWhatComesLater) {
  // Three pages. a, b and c fill them; a and c die, and d needs two pages in one piece: b must not
  // lie in the middle, where it would if each took the first free page.
  const TaskGraph graph =
      toy_graph("a:1 b:1 c:1 d:2", "a = make a(); b = make b(); c = use a(a); d = use b(b)");
  const Plan plan = plain_plan(graph, pages(3));
  expect_copied(graph, plan, true, 0);
}

TEST(FixedPlaces, LeaveRoomInOnePieceForWhatComesBack) {
  // Four pages. x (two pages) leaves after the first run; a, b, c, d fill the arena; a and c die,
  // so that x has two pages to come back to: a and c must lie side by side.
  const TaskGraph graph =
      toy_graph("x:2 a:1 b:1 c:1 d:1",
                "x = make x(); a = make a(); b = make b(); c = make c(); d = make d(); "
                "b = use a c(a, c, b); x = use all(x, d, b)");
  const DataId x{0};
  Plan plan = plain_plan(graph, pages(4));
  plan.offloads = {{.data = x, .size = pages(2), .after = {.runs = 1}}};
  plan.prefetches = {{.data = x, .size = pages(2), .after = {.runs = 6, .offloads = 1}}};
  for (Position p = 1; p < 7; ++p) plan.runs[p].after.offloads = 1;
  plan.runs[6].after.prefetches = 1;
  expect_copied(graph, plan, true, 0);
}

// A block, away in between, and a workspace of two pages beside it: each is where the placement
// says, whatever was there before.
TEST(FixedPlaces, AreWhereThePlacementSays) {
  TaskGraph graph = toy_graph("a:2 b:3", "a = make a(); b = make b(); use a(a)");
  graph.tasks[2].algorithms = {{.workspace = pages(2)}};
  const DataId a{0};
  const DataId b{1};
  Plan plan = plain_plan(graph, pages(4));
  plan.offloads = {{.data = a, .size = pages(2), .after = {.runs = 1}}};
  plan.prefetches = {{.data = a, .size = pages(2), .after = {.runs = 2, .offloads = 1}}};
  plan.runs[1].after.offloads = 1;
  plan.runs[2].after = {2, 1, 1};
  ASSERT_NO_FATAL_FAILURE(expect_verified(graph, plan));
  ManualStep step{graph, plan};
  const PlacedStep& placed = step.memory.placed();
  ASSERT_TRUE(placed.fits);
  ASSERT_EQ(placed.intervals.size(), 4U);  // a, b, the workspace, a again
  const auto place = [&](std::size_t interval) {
    return std::as_writable_bytes(std::span{step.near}).data() +
           placed.placement.offsets[interval].count();
  };
  step.memory.begin_run(0);
  EXPECT_EQ(step.memory.address(a), place(0));
  step.memory.end_run(0);
  step.copies.out.wait_and_finish_next();
  step.memory.begin_run(1);
  EXPECT_EQ(step.memory.address(b), place(1));
  EXPECT_EQ(step.stage.ledger.in_use(), pages(3));
  step.memory.end_run(1);
  step.copies.in.wait_and_finish_next();
  step.memory.begin_run(2);
  EXPECT_EQ(step.memory.address(a), place(3));
  EXPECT_EQ(step.memory.workspace(), place(2));
  EXPECT_EQ(step.stage.ledger.in_use(), pages(4));
  step.memory.end_run(2);
  EXPECT_EQ(step.stage.ledger.in_use(), 0_B);
}

}  // namespace
}  // namespace spillway::prefetch
