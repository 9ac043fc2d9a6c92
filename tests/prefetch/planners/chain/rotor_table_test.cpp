#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "prefetch/planners/chain/rotor.h"
#include "prefetch/verify/dataflow.h"
#include "tests/prefetch/planned.h"
#include "tests/prefetch/toy.h"

namespace spillway::prefetch {
namespace {

using namespace testing;
using namespace std::chrono_literals;
using um::Bytes;

// Ten stages with f = 1, b = 2, x = y = 1 and saved (xbar) 3, then the loss without time and bytes.
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

// The published counts: the loss, forward and backward, is one operation.
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

// Ten backward operations of 2, ten forward ones of 1; x_0, ten times 3 saved and a gradient each
// side of B_10: 33 units. In 7 units stage i runs forward 11 - i times: 55 + 20.
TEST(RotorTable, TakesNoLongerThanTheOperationsInTheSequence) {
  const RotorTable table{homogeneous_chain(), Bytes{1}, 40};
  EXPECT_EQ(table.makespan(33), 30ns);
  EXPECT_EQ(table.makespan(32), 31ns);
  EXPECT_EQ(table.makespan(7), 75ns);
}

TEST(RotorTable, RoundsSizesUpToUnits) {
  // Two bytes a unit: x and y 1 unit, saved 2. In units of the memory in bytes / 2, rounded up.
  const RotorTable table{homogeneous_chain(), Bytes{2}, 30};
  EXPECT_EQ(table.makespan(5), std::nullopt);  // 1 + 1 + 2 + 1 + 1 = 6 units at least
  EXPECT_EQ(table.makespan(6), 75ns);
}

TEST(RotorTable, RunsAStageOnceThatCannotRunAgain) {
  Chain chain = homogeneous_chain();
  chain.stages[4].is_recomputable = false;
  const RotorTable table{chain, Bytes{1}, 40};
  // Its input (1) and what it saves (3) stay from its first run on, beside what the stages after it
  // need, 7 with an input that is saved already: 11 with x_0.
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
// 10 or 12 the planner recomputes and moves nothing.
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
