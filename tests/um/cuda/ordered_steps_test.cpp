#include <gtest/gtest.h>

#include <algorithm>
#include <ostream>
#include <string>

#include "tests/prefetch/planned.h"
#include "tests/prefetch/runtime/copy_steps.h"
#include "tests/um/cuda/late_steps.h"
#include "tests/um/cuda/swapped_block.h"
#include "tests/um/cuda/tight_step.h"

// Several steps of plans on a GPU that does nothing before it must: each access of a kernel, copy,
// hint or free has an order with those that it needs one with. The order of the streams is drawn.

namespace spillway::um {
namespace {

using prefetch::DataId;
using prefetch::Plan;
using prefetch::Position;
using prefetch::TaskGraph;

constexpr int kSteps = 2;

// Given ahead: one that takes times, and two that are one piece.
constexpr int kGivenSteps = 3;

struct Way {
  LateMode mode;
  LateOrder order;
};

// Gtest looks for this name.
// NOLINTNEXTLINE(readability-identifier-naming)
void PrintTo(const Way& way, std::ostream* out) {
  const auto [mode, order] = way;
  *out << (mode == LateMode::kResident     ? "Resident"
           : mode == LateMode::kManaged    ? "Managed"
           : mode == LateMode::kDiscarding ? "Discarding"
                                           : "Copy")
       << (order == LateOrder::kWalked    ? "Walked"
           : order == LateOrder::kUntimed ? "Untimed"
                                          : "Given");
}

void expect_ordered(const TaskGraph& graph, const Plan& plan, Way way, std::uint32_t seeds) {
  ASSERT_EQ(prefetch::testing::reason_against(graph, plan), "");
  const int steps = way.order == LateOrder::kGiven ? kGivenSteps : kSteps;
  for (std::uint32_t seed = 0; seed < seeds; ++seed) {
    LateSteps{graph, plan, way.mode, way.order}.run(steps, seed);
  }
}

class OrderedSteps : public ::testing::TestWithParam<Way> {};

TEST_P(OrderedSteps, OfASwappedBlock) {
  const SwappedBlock subject;
  expect_ordered(subject.graph, subject.plan, GetParam(), 5);
}

TEST_P(OrderedSteps, OfLeNet) {
  const TightStep subject{"lenet", 512, GetParam().mode};
  EXPECT_FALSE(subject.plan.offloads.empty());
  expect_ordered(subject.step.graph, subject.plan, GetParam(), 3);
}

TEST_P(OrderedSteps, OfAResidualNetwork) {
  const TightStep subject{"resnet:1,1,1,1", 32, GetParam().mode};
  EXPECT_FALSE(subject.plan.prefetches.empty());
  EXPECT_GT(subject.recomputations(), 0);
  expect_ordered(subject.step.graph, subject.plan, GetParam(), 2);
}

// Batch 4: its weights and their gradients are more than the rest. In 60 % they have fixed places.
TEST_P(OrderedSteps, OfANetworkWhoseWeightsMove) {
  const TightStep subject{"resnet:1,1,1,1", 4, GetParam().mode, 60, true};
  const TaskGraph& graph = subject.step.graph;
  const prefetch::StateHome home{graph, prefetch::BlockSizes{graph, kPage}, subject.plan};
  EXPECT_GT(home.far(), Bytes{});
  expect_ordered(graph, subject.plan, GetParam(), 2);
}

INSTANTIATE_TEST_SUITE_P(EachMode, OrderedSteps,
                         ::testing::Values(Way{LateMode::kResident, LateOrder::kWalked},
                                           Way{LateMode::kManaged, LateOrder::kWalked},
                                           Way{LateMode::kCopy, LateOrder::kWalked},
                                           Way{LateMode::kManaged, LateOrder::kUntimed},
                                           Way{LateMode::kDiscarding, LateOrder::kWalked},
                                           Way{LateMode::kDiscarding, LateOrder::kUntimed},
                                           Way{LateMode::kCopy, LateOrder::kUntimed},
                                           Way{LateMode::kResident, LateOrder::kGiven},
                                           Way{LateMode::kCopy, LateOrder::kGiven}),
                         ::testing::PrintToStringParamName());

TEST(OrderedCopies, WhereTheArenaIsCompactedForARunAndForAPrefetch) {
  TaskGraph graph;
  prefetch::testing::add_unplaceable_runs(graph, 5);
  const DataId x = graph.tasks[0].writes[1];
  graph.tasks[4].writes = {};
  graph.tasks[4].reads.push_back(x);
  const Bytes size = graph[x].size;
  Plan plan = prefetch::testing::plain_plan(graph, prefetch::testing::pages(5));
  plan.offloads = {{.data = x, .size = size, .after = {.runs = 1}}};
  plan.prefetches = {{.data = x, .size = size, .after = {.runs = 4, .offloads = 1}}};
  for (Position p = 1; p < 5; ++p) plan.runs[p].after.offloads = 1;
  plan.runs[4].after.prefetches = 1;
  for (std::uint32_t seed = 0; seed < 3; ++seed) {
    LateSteps steps{graph, plan, LateMode::kCopy};
    steps.run(kSteps, seed);
    EXPECT_EQ(steps.compactions(), 2 * kSteps);
  }
}

}  // namespace
}  // namespace spillway::um
