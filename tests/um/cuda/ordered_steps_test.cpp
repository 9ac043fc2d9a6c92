#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "nets/network_catalogue.h"
#include "prefetch/files/machine.h"
#include "prefetch/need.h"
#include "src/step/machine_size_model.h"
#include "src/step/step.h"
#include "tests/prefetch/planned.h"
#include "tests/prefetch/runtime/copy_steps.h"
#include "tests/um/cuda/late_steps.h"
#include "tests/um/cuda/swapped_block.h"

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

void expect_ordered(const TaskGraph& graph, const Plan& plan, Way way, std::uint32_t seeds) {
  ASSERT_EQ(prefetch::testing::reason_against(graph, plan), "");
  const int steps = way.order == LateOrder::kGiven ? kGivenSteps : kSteps;
  for (std::uint32_t seed = 0; seed < seeds; ++seed) {
    LateSteps{graph, plan, way.mode, way.order}.run(steps, seed);
  }
}

// A network of the catalogue on an H200, in the least memory that any plan can work with and a
// tenth more.
struct TightStep {
  TightStep(const std::string& name, std::size_t batch, LateMode mode)
      : step{make_training_step(
            nets::build_network(name, {.image = nets::Shape{3, 32, 32}, .classes = 10}),
            MachineSizeModel{}, {.batch = batch})},
        profile{prefetch::model_profile(step.graph, prefetch::find_machine("h200"))} {
    const Bytes least = near_need(step.graph, prefetch::BlockSizes{step.graph, kPage}).smallest;
    plan = prefetch::testing::planned("joint", {.graph = step.graph,
                                                .profile = profile,
                                                .budget = Bytes{least.count() * 11 / 10},
                                                .page = kPage,
                                                .whole_blocks = mode == LateMode::kCopy,
                                                .may_recompute = true});
  }
  [[nodiscard]] std::ptrdiff_t recomputations() const {
    return std::ranges::count_if(plan.runs, &prefetch::TaskRun::is_recomputation);
  }

  const Step step;
  const prefetch::Profile profile;
  Plan plan;
};

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

std::string name_of(const ::testing::TestParamInfo<Way>& info) {
  const auto [mode, order] = info.param;
  const std::string name = mode == LateMode::kResident     ? "Resident"
                           : mode == LateMode::kManaged    ? "Managed"
                           : mode == LateMode::kDiscarding ? "Discarding"
                                                           : "Copy";
  return name + (order == LateOrder::kWalked    ? "Walked"
                 : order == LateOrder::kUntimed ? "Untimed"
                                                : "Given");
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
                         name_of);

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
