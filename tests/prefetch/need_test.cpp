#include <gtest/gtest.h>

#include "prefetch/planner.h"
#include "tests/prefetch/planned.h"
#include "tests/prefetch/toy.h"

namespace spillway::prefetch {
namespace {

using namespace testing;
using namespace std::chrono_literals;

// When b2 runs, y0, y1, y2, d2 and d1 are live: five pages. b2 itself touches y1, y2, d2, d1: four.
TEST(NearNeed, OfAChainIsTheLiveBlocksAtItsTurn) {
  const TaskGraph graph = chain(2, pages(1));
  const NearNeed need = near_need(graph, BlockSizes{graph, kPage});
  EXPECT_EQ(need.resident, pages(5));
  EXPECT_EQ(need.peak_with_workspace, pages(5));
  EXPECT_EQ(need.smallest, pages(4));
  EXPECT_EQ(graph[need.largest_task].name, "b2");
}

TEST(NearNeed, CountsTheLargestWorkspaceOnlyInThePeakWithWorkspace) {
  TaskGraph graph = chain(2, pages(1));
  graph.tasks[1].algorithms.push_back({.name = "fast", .workspace = pages(7)});
  const NearNeed need = near_need(graph, BlockSizes{graph, kPage});
  EXPECT_EQ(need.resident, pages(5));
  EXPECT_EQ(need.peak_with_workspace, pages(12));
  EXPECT_EQ(need.smallest, pages(4));
}

TEST(NearNeed, OfNothingIsNothing) {
  EXPECT_EQ(near_need(TaskGraph{}, BlockSizes{TaskGraph{}, kPage}).smallest, 0_B);
}

TEST(NearNeed, IsWhatTheResidentPlannerAsksFor) {
  const TaskGraph graph = chain(4, pages(3));
  const Profile profile = flat_profile(graph, 1ns);
  Problem given = problem(graph, profile, {});
  given.budget = near_need(graph, BlockSizes{graph, kPage}).resident;
  EXPECT_TRUE(std::holds_alternative<Plan>(find_planner("resident").plan(given)));
  given.budget -= kPage;
  EXPECT_EQ(refused("resident", given).smallest_budget, given.budget + kPage);
}

TEST(Infeasible, OfAStepWithoutTasksIsRefusedWithoutATask) {
  TaskGraph graph;
  graph.add(DataBlock{.name = "w", .size = pages(2), .kind = DataKind::kState});
  const Profile profile = flat_profile(graph, 1ns);
  Problem given = problem(graph, profile, {});
  given.budget = pages(1);
  EXPECT_EQ(to_string(refused("resident", given), graph, given.budget),
            "a budget of 4.00 KiB is too small; the smallest budget that works is 8192 bytes (8.00 "
            "KiB)");
}

TEST(Infeasible, SaysTaskAndSmallestBudget) {
  const TaskGraph graph = chain(2, pages(1));
  const Infeasible reason{.task = TaskId{4}, .smallest_budget = pages(4)};
  EXPECT_EQ(to_string(reason, graph, pages(3)),
            "a budget of 12.0 KiB is too small: task b2 needs most; the smallest budget that works "
            "is 16384 bytes (16.0 KiB)");
}

TEST(BlockSizes, MovesTensorsFromAQuarterPageOn) {
  TaskGraph graph;
  const DataId small = graph.add(DataBlock{.name = "small", .size = 1023_B});
  const DataId large = graph.add(DataBlock{.name = "large", .size = 1024_B});
  const DataId state =
      graph.add(DataBlock{.name = "state", .size = pages(9), .kind = DataKind::kState});
  const BlockSizes block_sizes{graph, kPage};
  EXPECT_FALSE(block_sizes.is_movable(small));
  EXPECT_EQ(block_sizes.size(large), kPage);
  EXPECT_FALSE(block_sizes.is_movable(state));
  EXPECT_EQ(block_sizes.pinned(), pages(9) + 1024_B);  // 1023 rounds up to 16 * 64
  EXPECT_EQ(block_sizes.pool(pages(11)), kPage);       // two pages less 1024 bytes: one whole
  EXPECT_EQ(block_sizes.pool(pages(8)), 0_B);
}

TEST(ChoosePage, TakesTheLargestThatLosesLittle) {
  const auto page_for = [](um::Bytes size) {
    TaskGraph graph;
    graph.add(DataBlock{.name = "x", .size = size});
    return choose_page(graph);
  };
  EXPECT_EQ(page_for(20_MiB), 2_MiB);
  // A huge page may lose 20 %: 5 MiB take 6 MiB, 20 % more; 3 MiB take 4 MiB, 33 % more.
  EXPECT_EQ(page_for(5_MiB), 2_MiB);
  EXPECT_EQ(page_for(3_MiB), 1_MiB);
  // A smaller one may lose 5 %: with pages of 1 MiB, 6.5 MiB take 7 MiB, 7.7 % more.
  EXPECT_EQ(page_for(6656_KiB), 512_KiB);
  EXPECT_EQ(page_for(100_B), 4_KiB);
  EXPECT_EQ(choose_page(chain(3, 65_KiB)), 4_KiB);
}

TEST(Verify, RefusesPagingOnDemandWhenWhatIsPinnedDoesNotFit) {
  TaskGraph graph = toy_graph("w:2", "w = update(w)");
  graph.data[0].kind = DataKind::kState;
  Plan plan = plain_plan(graph, pages(1));
  plan.residency = Residency::kOnDemand;
  EXPECT_NE(reason_against(graph, plan), "");
}

}  // namespace
}  // namespace spillway::prefetch
