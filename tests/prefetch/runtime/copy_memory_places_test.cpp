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
  TaskGraph graph;
  const auto [a, b, c, d] = add_blocks(graph, {{"a", 1}, {"b", 1}, {"c", 1}, {"d", 2}});
  add_producers(graph, {a, b});
  graph.add(Task{.name = "use a", .reads = {a}, .writes = {c}});
  graph.add(Task{.name = "use b", .reads = {b}, .writes = {d}});
  const Plan plan = plain_plan(graph, pages(3));
  ASSERT_NO_FATAL_FAILURE(expect_verified(graph, plan));
  const Executed executed = execute_copy(graph, plan);
  EXPECT_TRUE(executed.has_fixed_places);
  EXPECT_EQ(executed.compactions, 0U);
  EXPECT_EQ(executed.result, run_plainly(graph, kSteps));
  EXPECT_EQ(executed.peak, pages(3));
}

TEST(FixedPlaces, LeaveRoomInOnePieceForWhatComesBack) {
  // Four pages. x (two pages) leaves after the first run; a, b, c, d fill the arena; a and c die,
  // so that x has two pages to come back to: a and c must lie side by side.
  TaskGraph graph;
  const auto [x, a, b, c, d] =
      add_blocks(graph, {{"x", 2}, {"a", 1}, {"b", 1}, {"c", 1}, {"d", 1}});
  graph.add(Task{.name = "make x", .writes = {x}});
  add_producers(graph, {a, b, c, d});
  graph.add(Task{.name = "use a, c", .reads = {a, c}, .writes = {b}});
  graph.add(Task{.name = "use all", .reads = {x, d}, .writes = {x}});
  graph.tasks[5].reads.push_back(b);
  graph.tasks[6].reads.push_back(b);
  Plan plan = plain_plan(graph, pages(4));
  plan.offloads = {{.data = x, .size = pages(2), .after = {.runs = 1}}};
  plan.prefetches = {{.data = x, .size = pages(2), .after = {.runs = 6, .offloads = 1}}};
  for (Position p = 1; p < 7; ++p) plan.runs[p].after.offloads = 1;
  plan.runs[6].after.prefetches = 1;
  ASSERT_NO_FATAL_FAILURE(expect_verified(graph, plan));
  const Executed executed = execute_copy(graph, plan);
  EXPECT_TRUE(executed.has_fixed_places);
  EXPECT_EQ(executed.compactions, 0U);
  EXPECT_EQ(executed.result, run_plainly(graph, kSteps));
}

// A block, away in between, and a workspace of two pages beside it: each is where the placement
// says, whatever was there before.
TEST(FixedPlaces, AreWhereThePlacementSays) {
  TaskGraph graph;
  const auto [a, b] = add_blocks(graph, {{"a", 2}, {"b", 3}});
  graph.add(Task{.name = "make a", .writes = {a}});
  graph.add(Task{.name = "make b", .writes = {b}});
  graph.add(Task{.name = "use a", .reads = {a}, .algorithms = {{.workspace = pages(2)}}});
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
