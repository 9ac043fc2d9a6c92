#include "prefetch/moves/saved_blocks.h"

#include <gtest/gtest.h>

#include <string>

#include "tests/prefetch/toy.h"

namespace spillway::prefetch {
namespace {

using namespace testing;

std::vector<FarInterval> saved_in(const TaskGraph& graph) {
  return find_saved_blocks(graph, BlockSizes{graph, kPage}, runs_in_order(graph));
}

// load 0, f1 1, f2 2, loss 3, b2 4, b1 5. y0 is read by f1 and next by b1; y1 by f2, then b2; y2 is
// written by f2 and read by the loss.
TEST(SavedBlocks, AreWhatBothPassesUse) {
  const TaskGraph graph = chain(2, pages(2));
  const auto saved = saved_in(graph);
  ASSERT_EQ(saved.size(), 3U);
  EXPECT_EQ(graph[saved[0].data].name, "y0");
  EXPECT_EQ(saved[0].written, 0U);
  EXPECT_EQ(saved[0].last, 1U);
  EXPECT_EQ(saved[0].needed, 2U);
  EXPECT_EQ(saved[0].next, 5U);
  EXPECT_EQ(saved[0].size, pages(2));
  EXPECT_TRUE(saved[0].follows_a_read());
  EXPECT_EQ(saved[1].last, 2U);
  EXPECT_EQ(saved[1].next, 4U);
  EXPECT_EQ(graph[saved[2].data].name, "y2");
  EXPECT_FALSE(saved[2].follows_a_read());
}

// f2 also reads y0, as the end of a shortcut does: y0 leaves after f2.
TEST(SavedBlocks, LeaveAfterTheLastForwardReaderOfAFork) {
  TaskGraph graph = chain(2, pages(2));
  graph.tasks[2].reads.push_back(DataId{0});
  const auto saved = saved_in(graph);
  EXPECT_EQ(graph[saved[0].data].name, "y0");
  EXPECT_EQ(saved[0].last, 2U);
}

// f1 and f2 overwrite y0 in place: what is saved of it is what f2 wrote.
TEST(SavedBlocks, AreLastWrittenByTheLastForwardWriter) {
  TaskGraph graph = chain(2, pages(2));
  graph.tasks[1].writes.push_back(DataId{0});
  graph.tasks[2].reads.push_back(DataId{0});
  graph.tasks[2].writes.push_back(DataId{0});
  const auto saved = saved_in(graph);
  EXPECT_EQ(graph[saved[0].data].name, "y0");
  EXPECT_EQ(saved[0].written, 2U);
  EXPECT_FALSE(saved[0].follows_a_read());
}

TEST(BackwardLayers, FollowTheInputsThatTheyRead) {
  TaskGraph graph = chain(2, pages(2));
  graph.add(Task{.name = "update", .phase = Phase::kUpdate});  // reads nothing: b1's layer
  const auto runs = runs_in_order(graph);
  const auto layers = find_backward_layers(graph, runs, saved_in(graph));
  ASSERT_EQ(layers.size(), 3U);
  EXPECT_EQ(layers[0].layer, 3U);  // the loss
  EXPECT_EQ(layers[1].layer, 2U);  // b2 reads y1, the input of f2
  EXPECT_EQ(layers[1].begin, 4U);
  EXPECT_EQ(layers[1].end, 5U);
  EXPECT_EQ(layers[2].layer, 1U);
  EXPECT_EQ(layers[2].end, 7U);
}

// A forward task lies between b2 and another backward task of the same layer.
TEST(BackwardLayers, EndWhereAForwardTaskComesBetween) {
  TaskGraph graph = chain(2, pages(2));
  const Task more{.name = "b2 again", .phase = Phase::kBackward, .reads = {DataId{1}}};
  graph.tasks.insert(graph.tasks.begin() + 5, {Task{.name = "next batch"}, more});
  const auto layers = find_backward_layers(graph, runs_in_order(graph), saved_in(graph));
  ASSERT_EQ(layers.size(), 4U);  // loss, b2, b2 again, b1
  EXPECT_EQ(layers[1].layer, layers[2].layer);
  EXPECT_EQ(layers[1].end, 5U);
  EXPECT_EQ(layers[2].begin, 6U);
}

}  // namespace
}  // namespace spillway::prefetch
