#include "src/plan/micro_batch_choice.h"

#include <gtest/gtest.h>

#include "nets/builder.h"
#include "nets/families/network_catalogue.h"
#include "prefetch/block_sizes.h"
#include "prefetch/planner.h"
#include "prefetch/planners/catalogue.h"
#include "prefetch/verify/verify.h"
#include "src/program/machine_size_model.h"
#include "src/program/sub_step.h"
#include "tests/refusal.h"

namespace spillway {
namespace {

using prefetch::SubBatches;
using um::Bytes;

class SubBatchPlannerTest : public testing::Test {
 protected:
  [[nodiscard]] SubBatchPlanner planner(const char* name, Bytes budget) const {
    return SubBatchPlanner{{.network = net,
                            .size_model = size_model,
                            .machine = machine,
                            .step = {.batch = 64},
                            .budget = budget,
                            .request = {.planner = &prefetch::find_planner(name)}}};
  }
  // What one sub-batch of `size` needs at least, in the pages of the first one.
  [[nodiscard]] Bytes smallest(std::size_t size) const {
    const Step training = make_training_step(net, size_model, {.batch = size});
    const Step first = make_sub_step(training, SubStepPlace::kFirst, net);
    const Step last = make_sub_step(training, SubStepPlace::kLast, net);
    const prefetch::BlockSizes block_sizes{last.graph, prefetch::choose_page(first.graph)};
    return near_need(last.graph, block_sizes).smallest;
  }
  nets::Network net = nets::build_network("resnet18", {.image = nets::Shape{3, 128, 128}});
  MachineSizeModel size_model;
  prefetch::Machine machine = prefetch::find_machine("v100");
};

TEST_F(SubBatchPlannerTest, PlansTheFirstSubBatchThoseBetweenAndTheLast) {
  SubBatchPlanner modnn = planner("modnn", smallest(64));
  const auto steps = modnn.plan({.size = 16, .steps = 4});
  ASSERT_EQ(steps.size(), 3U);
  EXPECT_EQ(steps[0].times, 1U);
  EXPECT_EQ(steps[1].times, 2U);
  EXPECT_EQ(steps[2].times, 1U);
  EXPECT_LT(steps[0].graph->tasks.size(), steps[1].graph->tasks.size());
  EXPECT_LT(steps[1].graph->tasks.size(), steps[2].graph->tasks.size());
  for (const PlannedSubStep& step : steps) {
    const auto verdict = prefetch::verify(*step.graph, step.answer.plan);
    EXPECT_LE(std::get<prefetch::Verified>(verdict).peak, smallest(64));
  }
}

TEST_F(SubBatchPlannerTest, PlansTheOrdinaryStepForAWholeBatch) {
  SubBatchPlanner modnn = planner("modnn", 4 * smallest(64));
  const auto steps = modnn.plan({.size = 64, .steps = 1});
  ASSERT_EQ(steps.size(), 1U);
  EXPECT_EQ(steps[0].answer.plan.graph,
            fingerprint(make_training_step(net, size_model, {.batch = 64}).graph));
}

// Every rule finds sizes for a budget that a whole batch does not fit in, and leaves a batch whole
// where nothing is in short supply.
TEST_F(SubBatchPlannerTest, ChoosesSmallSubBatchesForSmallBudgets) {
  for (const char* name : {"modnn", "vdnn+", "capacity"}) {
    SubBatchPlanner tight = planner(name, smallest(16));
    const SubBatches batches = tight.choose();
    EXPECT_GE(batches.steps, 4U) << name;
    EXPECT_EQ(tight.plan(batches).size(), 3U) << name;
    EXPECT_EQ(planner(name, 20 * smallest(64)).choose(), (SubBatches{.size = 64, .steps = 1}))
        << name;
  }
}

TEST_F(SubBatchPlannerTest, ExtendsVdnnToSmallerBudgets) {
  SubBatchPlanner whole = planner("vdnn-dyn", smallest(16));
  EXPECT_THROW(static_cast<void>(whole.plan({.size = 64, .steps = 1})), BudgetTooSmall);
  SubBatchPlanner parts = planner("vdnn+", smallest(16));
  const auto steps = parts.plan(parts.choose());
  ASSERT_EQ(steps.size(), 3U);
  EXPECT_EQ(steps.back().answer.plan.planner, "vdnn+");
}

// At batch 2 the gradients of all parameters, which sub-batches keep, are more than a whole batch
// needs beside its weights.
TEST_F(SubBatchPlannerTest, LeavesABatchWholeWhereOnlyThatFits) {
  const auto graph = make_training_step(net, size_model, {.batch = 2}).graph;
  const prefetch::BlockSizes block_sizes{graph, prefetch::choose_page(graph)};
  const Bytes budget = near_need(graph, block_sizes).smallest;
  ASSERT_LT(budget, smallest(1));
  SubBatchPlanner modnn{{.network = net,
                         .size_model = size_model,
                         .machine = machine,
                         .step = {.batch = 2},
                         .budget = budget,
                         .request = {.planner = &prefetch::find_planner("modnn")}}};
  EXPECT_EQ(modnn.choose(), (SubBatches{.size = 2, .steps = 1}));
}

TEST_F(SubBatchPlannerTest, SaysWhatOneSampleNeeds) {
  const std::string sentence =
      test::refusal([&] { return planner("modnn", smallest(1) - Bytes{1}).choose(); });
  EXPECT_NE(sentence.find("in sub-batches of 1, "), std::string::npos) << sentence;
  EXPECT_NE(sentence.find(std::to_string(smallest(1).count()) + " bytes"), std::string::npos)
      << sentence;
}

// Of 1024 images of one pixel, no activation has more than 8 KiB. What an evaluation says of each
// is more than a quarter of a page that suits them.
TEST(RunPage, IsTooLargeForTheEvaluationsResultToMove) {
  nets::Builder builder{"thin", {1, 1, 1}};
  const nets::NodeId hidden = builder.linear("fc1", builder.input(), {.features = 2});
  const nets::Network net = builder.build(builder.linear("fc2", hidden, {.features = 2}));
  const MachineSizeModel size_model;
  const StepOptions options{.batch = 1024};
  const Step training = make_training_step(net, size_model, options);
  const Step evaluation = make_evaluation_step(net, size_model, options);
  const Bytes page = run_page(training.graph, evaluation, size_model);
  EXPECT_GT(page, step_page(training.graph, size_model));
  EXPECT_FALSE((prefetch::BlockSizes{evaluation.graph, page}.is_movable(evaluation.result)));
  EXPECT_EQ(page, (Workload{net, size_model, options}.page()));
}

}  // namespace
}  // namespace spillway
