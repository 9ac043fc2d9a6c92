#include "prefetch/planners/chain/chain.h"

#include <gtest/gtest.h>

#include "tests/prefetch/toy_graph.h"

namespace spillway::prefetch {
namespace {

using namespace testing;
using namespace std::chrono_literals;

Chain linearised(const TaskGraph& graph, std::size_t max = 100) {
  const BlockSizes block_sizes{graph, kPage};
  return linearise(graph, flat_profile(graph, 100ns), block_sizes, runs_in_order(graph), max);
}

std::vector<Position> forward_ends(const Chain& chain) {
  std::vector<Position> ends;
  for (const ChainStage& stage : chain.stages) ends.push_back(stage.forward.end);
  return ends;
}

// load, f1, f2, f3 | loss, b3, b2, b1. Each forward task is a stage; b_i reads y_i, so it belongs
// to the stage that writes y_i, and the loss, which reads y3, to the last.
TEST(Linearise, MakesAStageOfEachLayerOfAChain) {
  const Chain chain = linearised(testing::chain(3, pages(2)));
  EXPECT_EQ(forward_ends(chain), (std::vector<Position>{1, 2, 3, 4}));
  const std::vector<std::pair<Position, Position>> backward = {{8, 8}, {7, 8}, {6, 7}, {4, 6}};
  for (std::size_t i = 0; i < 4; ++i) {
    const ChainStage& stage = chain.stages[i];
    EXPECT_EQ(std::pair(stage.backward.begin, stage.backward.end), backward[i]) << i;
    EXPECT_EQ(stage.saved, pages(2)) << i;
    EXPECT_EQ(stage.kept, pages(2)) << i;
    EXPECT_EQ(stage.output, pages(i < 3 ? 2 : 0)) << i;
  }
  EXPECT_EQ(chain.stages[3].backward_time, 200ns);
  EXPECT_EQ(chain.stages[2].forward_time, 100ns);
  // Between b3 and b2 lives d2, between b2 and b1 d1; nothing after the loss's stage began.
  EXPECT_EQ(chain.stages[3].gradient, pages(0));
  EXPECT_EQ(chain.stages[2].gradient, pages(2));
  EXPECT_EQ(chain.stages[1].gradient, pages(2));
  EXPECT_FALSE(chain.stages[0].is_recomputable);  // load
  EXPECT_TRUE(chain.stages[1].is_recomputable);
}

// A residual block: f1 writes a; f2 reads a, writes b; f3 reads b and a, writes c; f4 reads c.
// After f2 both a and b live on: f2 and f3 are one virtual layer.
TaskGraph residual() {
  TaskGraph graph = toy_graph("a:2 b:2 c:2 d:2 e:2 g:2",
                              "a = f1(); b = f2(a); c = f3(a, b); d = f4(c); "
                              "e = b4(c, d); g = b3(b, e); e = b2(a, g)");
  for (std::size_t t = 4; t < 7; ++t) graph.tasks[t].phase = Phase::kBackward;
  return graph;
}

TEST(Linearise, GroupsANonLinearPartIntoAVirtualLayer) {
  const Chain chain = linearised(residual());
  EXPECT_EQ(forward_ends(chain), (std::vector<Position>{1, 3, 4}));
  EXPECT_EQ(chain.stages[1].saved, pages(4));  // b and c
  EXPECT_EQ(chain.stages[1].output, pages(2));
  // f3 has a, b and c near: a is its input, b and c it keeps. Saving nothing it still needs b.
  EXPECT_EQ(chain.stages[1].forward_extra, pages(0));
  EXPECT_EQ(chain.stages[1].passing_extra, pages(2));
}

TEST(Linearise, DoesNotCutBeforeAnUpdateInPlace) {
  TaskGraph graph = residual();
  graph.tasks[3].writes.push_back(graph.tasks[3].reads[0]);  // f4 updates c
  EXPECT_EQ(forward_ends(linearised(graph)), (std::vector<Position>{1, 4}));
}

// b4, which reads what f4 writes, reads b, too: f4 cannot be a stage of its own.
TEST(Linearise, DoesNotCutWhereALaterStageReadsOlderBlocks) {
  TaskGraph graph = residual();
  graph.tasks[4].reads.push_back(graph.tasks[1].writes[0]);
  EXPECT_EQ(forward_ends(linearised(graph)), (std::vector<Position>{1, 4}));
}

TEST(Linearise, JoinsTheShortestNeighboursWhereThereAreTooMany) {
  const TaskGraph graph = testing::chain(5, pages(2));
  Profile profile = flat_profile(graph, 100ns);
  profile.durations[2] = {10ns};
  const BlockSizes block_sizes{graph, kPage};
  // load 100, f1 100, f2 10, f3 100, f4 100, f5 100: f1 and f2 become one (110), the first of
  // equals.
  const Chain chain = linearise(graph, profile, block_sizes, runs_in_order(graph), 5);
  EXPECT_EQ(forward_ends(chain), (std::vector<Position>{1, 3, 4, 5, 6}));
  EXPECT_EQ(chain.stages[1].saved, pages(4));
  EXPECT_EQ(linearise(graph, profile, block_sizes, runs_in_order(graph), 1).stages.size(), 1U);
}

TEST(Linearise, CountsTheWorkspaceAsExtra) {
  TaskGraph graph = testing::chain(3, pages(2));
  graph.tasks[2].algorithms = {{.workspace = pages(3)}};  // f2
  graph.tasks[6].algorithms = {{.workspace = pages(5)}};  // b2
  const Chain chain = linearised(graph);
  EXPECT_EQ(chain.stages[2].forward_extra, pages(3));
  EXPECT_EQ(chain.stages[2].passing_extra, pages(3));
  EXPECT_EQ(chain.stages[2].backward_extra, pages(5));
  EXPECT_EQ(chain.stages[1].forward_extra, pages(0));
}

}  // namespace
}  // namespace spillway::prefetch
