#include "prefetch/task_graph.h"

#include <gtest/gtest.h>

#include <functional>

#include "prefetch/liveness.h"
#include "tests/prefetch/toy.h"

namespace spillway::prefetch {
namespace {

using namespace testing;

TEST(Fingerprint, DiffersWithEverythingThatAPlanDependsOn) {
  const TaskGraph graph = chain(2, pages(2));
  const std::vector<std::function<void(TaskGraph&)>> changes{
      [](TaskGraph& other) { other.data[1].name = "z"; },
      [](TaskGraph& other) { other.data[1].size = pages(3); },
      [](TaskGraph& other) { other.data[1].kind = DataKind::kState; },
      [](TaskGraph& other) { other.add(DataBlock{}); },
      [](TaskGraph& other) { other.tasks[1].name = "z"; },
      [](TaskGraph& other) { other.tasks[1].phase = Phase::kUpdate; },
      [](TaskGraph& other) { other.tasks[1].is_recomputable = false; },
      [](TaskGraph& other) { other.tasks[1].reads.clear(); },
      [](TaskGraph& other) { other.tasks[1].writes.clear(); },
      [](TaskGraph& other) { std::swap(other.tasks[1].reads, other.tasks[1].writes); },
      [](TaskGraph& other) { other.tasks[1].updates_once = other.tasks[1].writes; },
      [](TaskGraph& other) { other.tasks[1].algorithms[0].name = "z"; },
      [](TaskGraph& other) { other.tasks[1].algorithms[0].workspace = 1_B; },
      [](TaskGraph& other) { other.tasks[1].algorithms.push_back({}); },
      [](TaskGraph& other) { other.add(Task{}); }};
  for (std::size_t i = 0; i < changes.size(); ++i) {
    TaskGraph other = graph;
    changes[i](other);
    EXPECT_NE(fingerprint(other), fingerprint(graph)) << "change " << i;
  }
}

TEST(Fingerprint, DoesNotDependOnCosts) {
  const TaskGraph graph = chain(2, pages(2));
  TaskGraph other = graph;
  other.tasks[1].flops = 7;
  other.tasks[1].traffic = 7_B;
  EXPECT_EQ(fingerprint(other), fingerprint(graph));
}

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

}  // namespace
}  // namespace spillway::prefetch
