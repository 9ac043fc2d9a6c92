#include "src/sub_step.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "nets/builder.h"
#include "prefetch/dataflow.h"
#include "prefetch/occupancy.h"
#include "src/model_sizing.h"
#include "src/step.h"

namespace spillway {
namespace {

using prefetch::DataId;
using prefetch::DataKind;
using prefetch::Phase;
using prefetch::Task;
using prefetch::TaskGraph;

class SubStepTest : public testing::Test {
 protected:
  static TaskGraph make_training() {
    nets::Builder builder{"small", {3, 8, 8}};
    const nets::NodeId x = builder.convolution("conv", builder.input(), {.channels = 4});
    const nets::Network net = builder.build(builder.linear("fc", x, {.features = 5}));
    return make_training_step(net, ModelSizing{}, {.batch = 2}).graph;
  }
  static const Task& find(const TaskGraph& graph, const std::string& name) {
    return *std::ranges::find(graph.tasks, name, &Task::name);
  }

  const TaskGraph training = make_training();
};

TEST_F(SubStepTest, KeepsGradientsOfParametersAsState) {
  const TaskGraph sub_step = make_sub_step(training, SubStepEnd::kUpdates);
  for (const char* name : {"conv.dw", "fc.dw"}) {
    const auto before = std::ranges::find(training.data, name, &prefetch::DataBlock::name);
    const auto after = std::ranges::find(sub_step.data, name, &prefetch::DataBlock::name);
    ASSERT_NE(after, sub_step.data.end());
    EXPECT_EQ(before->kind, DataKind::kTensor);
    EXPECT_EQ(after->kind, DataKind::kState);
  }
  const auto states = [](const TaskGraph& graph) {
    return std::ranges::count(graph.data, DataKind::kState, &prefetch::DataBlock::kind);
  };
  EXPECT_EQ(states(sub_step), states(training) + 2);
}

TEST_F(SubStepTest, AddsToWhatTheSubBatchesBeforeHaveLeft) {
  const TaskGraph sub_step = make_sub_step(training, SubStepEnd::kUpdates);
  const Task& weights = find(sub_step, "conv.backward_weights");
  EXPECT_EQ(std::ranges::count(weights.reads, weights.writes.front()), 1);
  const Task& before = find(training, "conv.backward_weights");
  EXPECT_EQ(std::ranges::count(before.reads, before.writes.front()), 0);
}

TEST_F(SubStepTest, UpdatesOnlyAtTheEndOfABatch) {
  const auto updates = [](const TaskGraph& graph) {
    return std::ranges::count(graph.tasks, Phase::kUpdate, &Task::phase);
  };
  const TaskGraph first = make_sub_step(training, SubStepEnd::kGradients);
  const TaskGraph last = make_sub_step(training, SubStepEnd::kUpdates);
  EXPECT_EQ(updates(first), 0);
  EXPECT_EQ(updates(last), updates(training));
  EXPECT_EQ(first.tasks.size() + 2, last.tasks.size());
  for (const TaskGraph* graph : {&first, &last}) {
    EXPECT_FALSE(check_dataflow(*graph, prefetch::runs_in_order(*graph)));
  }
}

TEST_F(SubStepTest, SaysWhetherStatisticsAreOfTheBatch) {
  EXPECT_FALSE(normalizes_by_batch(training));
  nets::Builder builder{"norm", {3, 8, 8}};
  const nets::NodeId x = builder.batch_norm("norm", builder.input());
  const nets::Network net = builder.build(builder.linear("fc", x, {.features = 5}));
  EXPECT_TRUE(normalizes_by_batch(make_training_step(net, ModelSizing{}, {.batch = 2}).graph));
}

}  // namespace
}  // namespace spillway
