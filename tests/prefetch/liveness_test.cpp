#include "prefetch/liveness.h"

#include <gtest/gtest.h>

#include "prefetch/need.h"
#include "tests/prefetch/toy.h"

namespace spillway::prefetch {
namespace {

using namespace testing;

// load f1 f2 loss b2 b1
//  y0 y0 y0  y0  y0 y0
//     y1 y1  y1  y1 y1
//        y2  y2  y2
//            d2  d2
//                d1 d1
//                   d0
TEST(FindLives, RunFromTheFirstWriteToTheLastRead) {
  const TaskGraph graph = chain(2, pages(1));
  const std::vector<Life> lives = find_lives(graph, runs_in_order(graph));
  ASSERT_EQ(lives.size(), 6U);
  EXPECT_EQ(lives[0].begin(), 0U);  // y0
  EXPECT_EQ(lives[0].last(), 5U);
  EXPECT_EQ(lives[2].begin(), 2U);  // y2
  EXPECT_EQ(lives[2].last(), 4U);
}

TEST(FindLives, StartAgainWhereABlockIsOverwritten) {
  const TaskGraph graph = chain(2, pages(1));
  std::vector<TaskRun> runs = runs_in_order(graph);
  runs.insert(runs.begin() + 4, {.task = TaskId{1}, .is_recomputation = true});  // f1 before b2
  std::vector<Position> begins;
  for (const Life& life : find_lives(graph, runs)) {
    if (graph[life.data].name == "y1") begins.push_back(life.begin());
  }
  EXPECT_EQ(begins, (std::vector<Position>{1, 4}));
}

TEST(Demand, CountsLiveBlocksAndTheWorkspace) {
  TaskGraph graph = chain(2, pages(2));
  graph.tasks[2].algorithms = {{.name = "slow"}, {.name = "fast", .workspace = pages(3)}};
  std::vector<TaskRun> runs = runs_in_order(graph);
  runs[2].algorithm = 1;
  const BlockSizes block_sizes{graph, kPage};
  EXPECT_EQ(demand(graph, block_sizes, runs, find_lives(graph, runs)),
            (std::vector{pages(2), pages(4), pages(9), pages(8), pages(10), pages(8)}));
}

TEST(NearNeed, IsThePeakWhenResidentAndTheLargestTaskAtLeast) {
  const TaskGraph graph = chain(4, pages(2));
  const NearNeed need = near_need(graph, BlockSizes{graph, kPage});
  EXPECT_EQ(need.resident, pages(14));  // b4: y0 ... y4, d4, d3
  EXPECT_EQ(need.smallest, pages(8));   // any backward task: y, y, d, d
  EXPECT_EQ(graph[need.largest_task].name, "b4");
}

TEST(BlockSizes, KeepsStateAndSmallTensorsNear) {
  TaskGraph graph;
  const DataId weight =
      graph.add(DataBlock{.name = "w", .size = pages(9), .kind = DataKind::kState});
  const DataId small = graph.add(DataBlock{.name = "small", .size = 1000_B});
  const DataId large = graph.add(DataBlock{.name = "large", .size = 1024_B});
  const BlockSizes block_sizes{graph, kPage};
  EXPECT_FALSE(block_sizes.is_movable(weight));
  EXPECT_FALSE(block_sizes.is_movable(small));
  EXPECT_EQ(block_sizes.size(large), kPage);
  EXPECT_EQ(block_sizes.pinned(), pages(9) + 1024_B);
}

TEST(BlockSizes, SharesOneBufferAmongSmallWorkspaces) {
  TaskGraph graph = chain(2, pages(1));
  graph.tasks[1].algorithms = {{.name = "a", .workspace = 100_B}};
  graph.tasks[2].algorithms = {{.name = "b", .workspace = 900_B},
                               {.name = "c", .workspace = 5000_B}};
  const BlockSizes block_sizes{graph, kPage};
  EXPECT_EQ(block_sizes.small_workspace(), 900_B);
  EXPECT_EQ(block_sizes.workspace_size(900_B), 0_B);
  EXPECT_EQ(block_sizes.workspace_size(5000_B), pages(2));
}

TEST(ChoosePage, IsLargeForLargeTensorsAndSmallForSmallOnes) {
  EXPECT_EQ(choose_page(chain(3, 100_MiB)), 2_MiB);
  EXPECT_EQ(choose_page(chain(3, 65_KiB)), 4_KiB);
}

}  // namespace
}  // namespace spillway::prefetch
