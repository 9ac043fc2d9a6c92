#include "prefetch/planners/chain/chain.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>

#include "prefetch/bounds/bounds.h"
#include "prefetch/planners/chain/dynprog.h"
#include "prefetch/planners/chain/rotor.h"
#include "prefetch/verify/dataflow.h"
#include "tests/prefetch/exact_solver.h"
#include "tests/prefetch/planned.h"
#include "tests/prefetch/random_graph.h"
#include "tests/prefetch/random_profile.h"
#include "tests/prefetch/toy.h"
#include "tests/prefetch/toy_chain.h"

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

// load, f1, f2, f3 | loss, b3, b2, b1. Each forward task is a stage. b_i reads y_i, so it belongs
// to the stage that writes y_i; the loss, which reads y3, belongs to the last.
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
  // d2 lives between b3 and b2, d1 between b2 and b1; no tensor lives before the loss's stage.
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
  // f3 has a, b and c near: a is its input, b and c are kept. Without saving it still needs b.
  EXPECT_EQ(chain.stages[1].forward_extra, pages(0));
  EXPECT_EQ(chain.stages[1].passing_extra, pages(2));
}

TEST(Linearise, DoesNotCutBeforeAnUpdateInPlace) {
  TaskGraph graph = residual();
  graph.tasks[3].writes.push_back(graph.tasks[3].reads[0]);  // f4 updates c
  EXPECT_EQ(forward_ends(linearised(graph)), (std::vector<Position>{1, 4}));
}

// b4 reads f4's output and also b: f4 cannot be a separate stage.
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
  // load 100, f1 100, f2 10, f3 100, f4 100, f5 100: f1 and f2 are joined (110), the first among
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

using DynProg = ToyChain;

// y0 has 8 pages, the others 2, and b4 lacks 2 pages: greedy must offload y0, 8 pages each way;
// dynprog offloads one of 2 pages. A page takes 200 ns.
TEST_F(DynProg, OffloadsASmallActivationWhereGreedyTakesTheFirst) {
  graph.data[0].size = pages(8);
  profile.graph = fingerprint(graph);
  profile.link = toy_link(200ns);
  const Plan plan = plan_with("dynprog", 18);
  ASSERT_EQ(plan.offloads.size(), 1U);
  EXPECT_EQ(plan.offloads[0].size, pages(2));
  // Greedy: y0 leaves from 200 to 1800, so b4 (600 without waiting) runs until 1900. y0 returns
  // when b3 needs less, at the earliest after b4: until 3500, then b1.
  EXPECT_EQ(makespan(plan_with("greedy", 18)), 3600ns);
  EXPECT_LE(makespan(plan), 1800ns);
}

using um::Bytes;

// A random chain as in the paper: one forward and one backward task per layer; the last backward
// task includes the loss; a layer saves only its output.
TaskGraph paper_chain() {
  TaskGraph graph = random_chain(5, false);
  std::erase_if(graph.tasks, [](const Task& task) { return task.name == "loss"; });
  for (Task& task : graph.tasks) {
    std::erase_if(task.reads, [&](DataId id) { return graph[id].name == "loss"; });
  }
  return graph;
}

Profile half_duplex_profile(const TaskGraph& graph) {
  Profile profile = random_profile(graph);
  profile.link.latency = um::Nanoseconds{0};
  profile.link.is_duplex = false;
  profile.link.copies_while_read = true;
  return profile;
}

// Interruptible communications relax the problem of the exact solver, and restrict that of the
// bound.
RC_GTEST_PROP(BestChainOffload, IsBetweenTheBoundAndTheOptimumOfWholeTransfers, ()) {
  const TaskGraph graph = paper_chain();
  const Profile profile = half_duplex_profile(graph);
  const BlockSizes block_sizes{graph, kPage};
  const Problem given{
      .graph = graph, .profile = profile, .budget = random_budget(graph), .page = kPage};
  const std::vector<TaskRun> runs = runs_in_order(graph);
  const Chain chain = linearise(graph, profile, block_sizes, runs, 100);
  RC_ASSERT(chain.stages.size() == graph.tasks.size() / 2 + 1);
  const auto best = best_chain_offload(chain, block_sizes.pool(given.budget), profile.link,
                                       {.entries = 1 << 16, .grid_cells = 1 << 20});
  const auto optimum = ExactSolver{given}.solve();
  RC_ASSERT(best.has_value() == optimum.has_value());
  if (!best) return;
  const double makespan =
      static_cast<double>(compute_time(profile, runs).count()) + 1e9 * best->idle_seconds;
  RC_ASSERT(makespan <= static_cast<double>(optimum->count()) + 1);
  RC_ASSERT(makespan >= static_cast<double>(lower_bounds(given).offload.count()) - 1);
}

// Coarse grids and few entries lose optimality, not soundness: the choice has at least the least
// idle time.
RC_GTEST_PROP(BestChainOffload, IsNoBetterWhenItRounds, ()) {
  const TaskGraph graph = random_chain(12);
  const Profile profile = half_duplex_profile(graph);
  const BlockSizes block_sizes{graph, kPage};
  const NearNeed need = near_need(graph, block_sizes);
  const Bytes memory = block_sizes.pool(Bytes{(need.smallest + need.resident).count() / 2});
  const Chain chain = linearise(graph, profile, block_sizes, runs_in_order(graph), 100);
  const auto exact =
      best_chain_offload(chain, memory, profile.link, {.entries = 1 << 16, .grid_cells = 1 << 20});
  const auto rounded =
      best_chain_offload(chain, memory, profile.link, {.entries = 8, .grid_cells = 16});
  if (rounded) {
    RC_ASSERT(exact.has_value());
    RC_ASSERT(exact->idle_seconds <= rounded->idle_seconds + 1e-12);
  }
}

// Four stages that save 4, 1, 2 and 1 bytes (x_1 ... x_4); F 1 s, B 1 s, one byte per second, no
// gradients. F_3 and B_3 need all 8 bytes and have 7.
// x_2 offloaded: written by F_1, sent while F_2 runs, in time for F_3. B_2 reads it, and during B_3
// it has no room: 1 s of waiting between the two.
// x_1 offloaded: sent from 1 s to 5 s, back at 9 s at the earliest. B_1, which reads it, could have
// run at 6 s: 3 s. B_3 reads x_3 and x_4.
TEST(BestChainOffload, PrefersTheActivationThatFitsTheLink) {
  Chain chain;
  for (const std::uint64_t saved : {4U, 1U, 2U, 1U}) {
    chain.stages.push_back({.forward_time = std::chrono::seconds{1},
                            .backward_time = std::chrono::seconds{1},
                            .output = Bytes{saved},
                            .saved = Bytes{saved},
                            .kept = Bytes{saved}});
  }
  const LinkProfile link{.offload = um::Bandwidth{1}, .prefetch = um::Bandwidth{1}};
  const auto best = best_chain_offload(chain, Bytes{7}, link);
  ASSERT_TRUE(best);
  EXPECT_EQ(best->offloaded, (std::vector<bool>{false, false, true, false}));
  EXPECT_DOUBLE_EQ(best->idle_seconds, 1);
  EXPECT_FALSE(best_chain_offload(chain, Bytes{2}, link));
  const auto all_near = best_chain_offload(chain, Bytes{8}, link);
  ASSERT_TRUE(all_near);
  EXPECT_EQ(all_near->idle_seconds, 0);
  EXPECT_EQ(all_near->offloaded, std::vector<bool>(4, false));
}

using Greedy = ToyChain;

TEST_F(Greedy, OffloadsTheFirstActivationsAndBringsThemBackInReverse) {
  const auto moved = [&](std::uint64_t pool) {
    const Plan plan = plan_with("greedy", pool);
    return names(plan.offloads) + ", " + names(plan.prefetches);
  };
  // The smallest k with 2 k >= 14 - M.
  EXPECT_EQ(moved(13), "y0, y0");
  EXPECT_EQ(moved(12), "y0, y0");
  EXPECT_EQ(moved(11), "y0 y1, y1 y0");
  EXPECT_EQ(moved(8), "y0 y1 y2, y2 y1 y0");
}

// f1 reads y0 and f4 reads it again, so it cannot be away at the peak of the forward pass: f4 with
// y0, y3, y4, y1 and y2. k is raised to 2 although y0 alone has 2 pages. A pool of 12 suffices for
// the backward pass with one block away.
TEST_F(Greedy, RaisesKWhereAnEarlyBlockIsInUseAtThePeak) {
  graph.tasks[4].reads.push_back(graph.tasks[0].writes[0]);  // f4 reads y0
  graph.tasks[4].algorithms = {{.workspace = pages(4)}};     // makes f4 the peak: 14
  profile.graph = fingerprint(graph);
  const Plan plan = plan_with("greedy", 12);
  EXPECT_EQ(std::ranges::count(plan.offloads, DataId{1}, &Move::data), 1);
}

// Pool 12: y0 leaves while f2 runs and is back for b1. One page takes 10 ns; nothing waits.
TEST_F(Greedy, HidesTheMovesBehindTheTasks) {
  EXPECT_EQ(makespan(plan_with("greedy", 12)), 1000ns);
}

// Ten stages with f = 1, b = 2, x = y = 1 and saved (xbar) 3, then a loss without time and bytes.
Chain homogeneous_chain() {
  Chain chain{.stages = {}, .input = Bytes{1}, .input_gradient = Bytes{1}};
  for (int i = 0; i < 10; ++i) {
    chain.stages.push_back({.forward_time = 1ns,
                            .backward_time = 2ns,
                            .output = Bytes{1},
                            .saved = Bytes{3},
                            .kept = Bytes{3},
                            .gradient = Bytes{1}});
  }
  chain.stages.emplace_back();
  return chain;
}

// Counts as published: the loss, forward and backward, is one operation.
std::size_t operations(const RotorTable& table, std::size_t memory) {
  return table.sequence(memory).size() - 1;
}

TEST(RotorTable, NeedsThePublishedOperationCounts) {
  const RotorTable table{homogeneous_chain(), Bytes{1}, 40};
  EXPECT_EQ(table.makespan(6), std::nullopt);
  EXPECT_EQ(operations(table, 7), 66U);
  EXPECT_EQ(operations(table, 8), 41U);
  EXPECT_EQ(operations(table, 9), 36U);
  EXPECT_EQ(operations(table, 15), 28U);
}

// Ten backward operations of 2, ten forward ones of 1. x_0, ten times 3 saved and a gradient on
// each side of B_10: 33 units. In 7 units stage i runs forward 11 - i times: 55 + 20.
TEST(RotorTable, TakesNoLongerThanTheOperationsInTheSequence) {
  const RotorTable table{homogeneous_chain(), Bytes{1}, 40};
  EXPECT_EQ(table.makespan(33), 30ns);
  EXPECT_EQ(table.makespan(32), 31ns);
  EXPECT_EQ(table.makespan(7), 75ns);
}

TEST(RotorTable, RoundsSizesUpToUnits) {
  // Two bytes per unit: x and y take 1 unit, saved takes 2.
  const RotorTable table{homogeneous_chain(), Bytes{2}, 30};
  EXPECT_EQ(table.makespan(5), std::nullopt);  // 1 + 1 + 2 + 1 + 1 = 6 units at least
  EXPECT_EQ(table.makespan(6), 75ns);
}

TEST(RotorTable, RunsAStageOnceThatCannotRunAgain) {
  Chain chain = homogeneous_chain();
  chain.stages[4].is_recomputable = false;
  const RotorTable table{chain, Bytes{1}, 40};
  // The stage's input (1) and saved bytes (3) stay from its first run on, beside the need of later
  // stages, 7 with an input that is already saved: 11 with x_0.
  EXPECT_EQ(table.makespan(10), std::nullopt);
  for (const std::size_t memory : {11U, 15U, 25U}) {
    ASSERT_TRUE(table.makespan(memory)) << memory;
    std::size_t forward_runs = 0;
    for (const RotorOperation& operation : table.sequence(memory)) {
      const bool is_forward = operation.kind != RotorOperation::Kind::kBackward;
      if (operation.stage == 4 && is_forward) ++forward_runs;
    }
    EXPECT_EQ(forward_runs, 1U) << memory;
  }
}

// In a chain of four layers of 2-page blocks everything takes 14 pages (see bounds_test.cpp). With
// 10 or 12 the planner recomputes without moves.
TEST(Rotor, RecomputesInsteadOfMoving) {
  TaskGraph graph = chain(4, pages(2));
  graph.tasks[0].is_recomputable = true;
  const Profile profile = flat_profile(graph, 100ns);
  for (const std::uint64_t pool : {10U, 12U, 14U}) {
    Problem given = problem(graph, profile, pages(pool));
    given.may_recompute = true;
    const Plan plan = planned("rotor", given);
    EXPECT_TRUE(plan.offloads.empty() && plan.prefetches.empty());
    EXPECT_EQ(plan.runs.size() > graph.tasks.size(), pool < 14) << pool;
  }
}

TEST(Rotor, SaysWhatItNeedsWhereItMayNotRecompute) {
  const TaskGraph graph = chain(4, pages(2));
  const Profile profile = flat_profile(graph, 100ns);
  const Problem given = problem(graph, profile, pages(13));
  EXPECT_EQ(refused("rotor", given).smallest_budget, given.budget + pages(1));
}

}  // namespace
}  // namespace spillway::prefetch
