#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <ostream>
#include <string>
#include <utility>
#include <vector>

#include "nets/families/network_catalogue.h"
#include "prefetch/files/machine.h"
#include "prefetch/planner.h"
#include "src/program/machine_size_model.h"
#include "src/program/step.h"
#include "tests/prefetch/planned.h"
#include "tests/prefetch/runtime/copy_steps.h"
#include "tests/um/cuda/late_steps.h"
#include "tests/um/cuda/swapped_block.h"

// Several steps of plans on a GPU that works as late as possible. Each access of a kernel, copy,
// hint or free must have every order that it needs; the order of the streams is drawn.

// Driver calls for near memory in a repeated step.

// The number of driver calls in a step of ResNet-50, including one launch per task.

namespace spillway::um {
namespace {

using prefetch::DataId;
using prefetch::Plan;
using prefetch::Position;
using prefetch::TaskGraph;

// A network of the catalogue on an H200. The memory is a tenth more than the least that any plan
// needs, or `percent` of the need when nothing moves.
struct TightStep {
  TightStep(const std::string& name, std::size_t batch, LateMode mode, std::uint64_t percent = 0,
            bool has_far_state = false)
      : step{make_step(name, batch, has_far_state)},
        profile{prefetch::model_profile(step.graph, prefetch::find_machine("h200"))} {
    const auto need = near_need(step.graph, prefetch::BlockSizes{step.graph, kPage});
    const Bytes budget = percent == 0 ? Bytes{need.smallest.count() * 11 / 10}
                                      : Bytes{need.resident.count() * percent / 100};
    plan = prefetch::testing::planned("joint", {.graph = step.graph,
                                                .profile = profile,
                                                .budget = budget,
                                                .page = kPage,
                                                .whole_blocks = mode == LateMode::kCopy,
                                                .may_recompute = true});
  }
  static Step make_step(const std::string& name, std::size_t batch, bool has_far_state) {
    Step made = make_training_step(
        nets::build_network(name, {.image = nets::Shape{3, 32, 32}, .classes = 10}),
        MachineSizeModel{}, {.batch = batch});
    for (prefetch::DataBlock& block : made.graph.data) {
      if (block.kind == prefetch::DataKind::kState) block.is_offloadable = has_far_state;
    }
    return made;
  }
  [[nodiscard]] std::ptrdiff_t recomputations() const {
    return std::ranges::count_if(plan.runs, &prefetch::TaskRun::is_recomputation);
  }

  const Step step;
  const prefetch::Profile profile;
  prefetch::Plan plan;
};

constexpr int kSteps = 2;

// Submitted ahead: one step with times, then two repeats of a captured step.
constexpr int kGivenSteps = 3;

struct Way {
  LateMode mode;
  LateOrder order;
};

// Gtest requires this name.
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
  expect_ordered(subject.step.graph, subject.plan, GetParam(), 1);
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

using OrderedRecomputations = OrderedSteps;

TEST_P(OrderedRecomputations, OfAResidualNetwork) {
  const TightStep subject{"resnet:1,1,1,1", 32, GetParam().mode};
  EXPECT_FALSE(subject.plan.prefetches.empty());
  EXPECT_GT(subject.recomputations(), 0);
  expect_ordered(subject.step.graph, subject.plan, GetParam(), 1);
}

INSTANTIATE_TEST_SUITE_P(EachMode, OrderedRecomputations,
                         ::testing::Values(Way{LateMode::kManaged, LateOrder::kWalked},
                                           Way{LateMode::kDiscarding, LateOrder::kWalked},
                                           Way{LateMode::kCopy, LateOrder::kWalked}),
                         ::testing::PrintToStringParamName());

using OrderedMovesOfState = OrderedSteps;

// Batch 4: weights and gradients exceed the rest. With 60 % of the memory they have fixed places.
TEST_P(OrderedMovesOfState, OfANetworkWhoseWeightsMove) {
  const TightStep subject{"resnet:1,1,1,1", 4, GetParam().mode, 60, true};
  const TaskGraph& graph = subject.step.graph;
  const prefetch::StateHome home{graph, prefetch::BlockSizes{graph, kPage}, subject.plan};
  EXPECT_GT(home.far(), Bytes{});
  expect_ordered(graph, subject.plan, GetParam(), 1);
}

INSTANTIATE_TEST_SUITE_P(EachMode, OrderedMovesOfState,
                         ::testing::Values(Way{LateMode::kManaged, LateOrder::kUntimed},
                                           Way{LateMode::kDiscarding, LateOrder::kUntimed},
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

using Log = std::vector<std::string>;

std::size_t count(const Log& log, const std::string& part) {
  return static_cast<std::size_t>(std::ranges::count_if(
      log, [&](const std::string& line) { return line.find(part) != std::string::npos; }));
}

class ManagedCalls : public ::testing::Test {
 protected:
  // Returns the calls of the second step, on a GPU that works at once or as late as possible.
  [[nodiscard]] Log calls(LateMode mode, bool is_late) const {
    auto owned = std::make_unique<RecordingApi>();
    RecordingApi& driver = *owned;
    LateSteps steps{subject.step.graph, subject.plan, mode, LateOrder::kWalked, std::move(owned)};
    const auto step = [&] { is_late ? steps.run(1, 0) : static_cast<void>(steps.run_one()); };
    step();
    static_cast<void>(driver.take_log());
    step();
    return driver.take_log();
  }

  const TightStep subject{"resnet:1,1,1,1", 32, LateMode::kManaged};
  const std::size_t offloads = subject.plan.offloads.size();
  const std::size_t prefetches = subject.plan.prefetches.size();
};

TEST_F(ManagedCalls, AreThoseOfTheMovesAloneWhereAllUnifiedMemoryFits) {
  for (const bool is_late : {false, true}) {
    const Log log = calls(LateMode::kManaged, is_late);
    EXPECT_EQ(count(log, "um upkeep"), 0U);
    EXPECT_EQ(count(log, ": prefetch "), offloads + prefetches);
    EXPECT_EQ(count(log, "um out: record") + count(log, "um out 2: record"), offloads);
    EXPECT_EQ(count(log, "um in: record") + count(log, "um in 2: record"), prefetches);
    EXPECT_LE(count(log, ": wait for "), prefetches);
  }
  EXPECT_GT(count(calls(LateMode::kManaged, true), "compute: wait for um in"), 0U);
}

TEST_F(ManagedCalls, DropAndPopulatePagesWhereTheDriverIsTold) {
  const Log log = calls(LateMode::kDiscarding, false);
  EXPECT_GT(count(log, "um upkeep: discard slab"), 0U);
  EXPECT_GT(count(log, "um upkeep: discard and prefetch near"), 0U);
}

// A step planned for an H200. A small batch keeps its memory small.
class HostCalls : public ::testing::Test {
 protected:
  // Plans for `percent` of the step's need with everything near.
  [[nodiscard]] prefetch::Plan planned(LateMode mode, std::uint64_t percent) const {
    const Bytes all = near_need(step_.graph, prefetch::BlockSizes{step_.graph, kPage}).resident;
    return prefetch::testing::planned(
        mode == LateMode::kResident ? "resident" : "joint",
        {.graph = step_.graph,
         .profile = prefetch::model_profile(step_.graph, prefetch::find_machine("h200")),
         .budget = Bytes{all.count() * percent / 100},
         .page = kPage,
         .whole_blocks = mode == LateMode::kCopy,
         .may_recompute = true});
  }
  // Counts the calls of a step after warm-up.
  [[nodiscard]] std::size_t count(LateMode mode, std::uint64_t percent, LateOrder order) {
    const prefetch::Plan plan = planned(mode, percent);
    EXPECT_EQ(plan.offloads.empty(), mode == LateMode::kResident);
    LateSteps steps{step_.graph, plan, mode, order};
    for (int warm_up = 0; warm_up < 2; ++warm_up) static_cast<void>(steps.run_one());
    const std::size_t calls = steps.run_one();
    RecordProperty(std::to_string(static_cast<int>(mode)) + "_" +
                       std::to_string(static_cast<int>(order)) + "_calls",
                   static_cast<int>(calls));
    return calls;
  }

  const Step step_ = make_training_step(
      nets::build_network("resnet50", {.image = nets::Shape{3, 224, 224}, .classes = 1000}),
      MachineSizeModel{}, {.batch = 16});
};

TEST_F(HostCalls, AreFewWhereAStepIsRepeated) {
  EXPECT_GT(count(LateMode::kResident, 100, LateOrder::kWalked), 1000U);
  EXPECT_LE(count(LateMode::kResident, 100, LateOrder::kGiven), 30U);
  EXPECT_GT(count(LateMode::kCopy, 40, LateOrder::kWalked), 1000U);
  EXPECT_LE(count(LateMode::kCopy, 40, LateOrder::kGiven), 30U);
}

TEST_F(HostCalls, OfUnifiedMemoryAreHalfAsManyWithoutTimes) {
  const std::size_t timed = count(LateMode::kManaged, 40, LateOrder::kWalked);
  EXPECT_LE(count(LateMode::kManaged, 40, LateOrder::kUntimed), timed / 2);
}

}  // namespace
}  // namespace spillway::um
