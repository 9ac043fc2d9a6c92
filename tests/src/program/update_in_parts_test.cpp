// Steps whose large linear layers have their gradients and the optimizer's blocks in parts.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "nets/builder.h"
#include "nets/families/network_catalogue.h"
#include "prefetch/block_sizes.h"
#include "prefetch/plan.h"
#include "prefetch/planner.h"
#include "prefetch/task_graph.h"
#include "prefetch/verify/dataflow.h"
#include "src/host/host_backend.h"
#include "src/program/machine_size_model.h"
#include "src/program/micro_batches.h"
#include "src/program/passes.h"
#include "src/program/step.h"
#include "tests/src/step_tasks.h"

namespace spillway {
namespace {

using prefetch::DataId;
using prefetch::Phase;
using prefetch::Task;
using test::block_names;
using test::find_task;

constexpr um::Bytes kMiB{1U << 20U};

std::vector<std::string> state_names(const Step& step) {
  std::vector<std::string> result;
  for (const StateBlock& block : step.state) result.push_back(block.name);
  return result;
}

// The least budget of a plan under which all state may be far.
um::Bytes smallest_with_state_far(const Step& step) {
  prefetch::TaskGraph graph = step.graph;
  for (prefetch::DataBlock& block : graph.data)
    block.is_offloadable = block.kind == prefetch::DataKind::kState;
  return near_need(graph, prefetch::BlockSizes{graph, prefetch::choose_page(graph)}).smallest;
}

class LargeUpdate : public testing::Test {
 protected:
  [[nodiscard]] Step step(um::Bytes largest_update) const {
    return make_training_step(
        vgg, size_model,
        {.batch = 2, .optimizer = AdamOptions{}, .largest_update = largest_update});
  }
  const nets::Network vgg = nets::build_network("vgg16", {});
  const host::HostBackend size_model{1};
};

// 25088 x 4096 weights are 392 MiB: thirteen parts of at most 32 MiB, each of which is used up
// before the next one is made.
TEST_F(LargeUpdate, OfVggComesInPartsAsTheGradientDoes) {
  const Step training = step(StepOptions{}.largest_update);
  const Task& first = *find_task(training, "fc6.backward_weights[0]");
  const Task* task = &first;
  for (std::size_t i = 0; i < 13; ++i) {
    const std::string suffix = "[" + std::to_string(i) + "]";
    EXPECT_EQ(task->name, "fc6.backward_weights" + suffix);
    EXPECT_EQ(block_names(training, task->writes), std::vector<std::string>{"fc6.dw" + suffix});
    EXPECT_LE(training.graph[task->writes[0]].size, 32 * kMiB);
    EXPECT_GE(training.graph[task->writes[0]].size, 29 * kMiB);
    ++task;
    EXPECT_EQ(task->name, "fc6.update" + suffix);
    EXPECT_EQ(task->phase, Phase::kUpdate);
    EXPECT_EQ(block_names(training, task->reads),
              (std::vector<std::string>{"fc6", "fc6.exp_avg" + suffix, "fc6.exp_avg_sq" + suffix,
                                        "fc6.dw" + suffix}));
    ++task;
  }
  EXPECT_EQ(find_task(training, "fc6.update[13]"), nullptr);
  EXPECT_EQ((&first - 1)->name, "fc6.backward_data");
  const auto violation =
      prefetch::check_dataflow(training.graph, prefetch::runs_in_order(training.graph));
  EXPECT_FALSE(violation) << violation->reason;
}

TEST_F(LargeUpdate, HasTheSameStateWhateverTheParts) {
  const Step whole = step(1024 * kMiB);
  const Step parts = step(32 * kMiB);
  EXPECT_EQ(state_names(parts), state_names(whole));
  for (std::size_t i = 0; i < whole.state.size(); ++i) {
    um::Bytes together;
    for (const DataId id : parts.state[i].ids) together += parts.graph[id].size;
    EXPECT_EQ(together, whole.graph[whole.state[i].ids.front()].size) << whole.state[i].name;
    EXPECT_EQ(parts.state[i].spec, whole.state[i].spec);
    EXPECT_EQ(whole.state[i].ids.size(), 1);
  }
}

// The update of fc6 needs weights, gradient and two moments, or weights and three parts of them.
TEST_F(LargeUpdate, NeedsTheWeightsAndThreeParts) {
  const um::Bytes fc6 =
      size_model.parameter_bytes(LinearParameters{.out = 4096, .in = {512, 7, 7}, .bias = true});
  EXPECT_GE(smallest_with_state_far(step(1024 * kMiB)), 4 * fc6);
  const um::Bytes in_parts = smallest_with_state_far(step(32 * kMiB));
  EXPECT_LE(in_parts, fc6 + 3 * 32 * kMiB + 8 * kMiB);
  EXPECT_LE(4 * in_parts, 4 * 138'357'544 * um::Bytes{4}) << "a quarter of all state";
}

TEST_F(LargeUpdate, SharesTheWorkOfTheWhole) {
  const Step whole = step(1024 * kMiB);
  const Step parts = step(32 * kMiB);
  for (const std::string name : {"fc6.backward_weights", "fc6.update"}) {
    double flops = 0;
    um::Bytes traffic;
    for (std::size_t i = 0; i < 13; ++i) {
      const Task& part = *find_task(parts, name + "[" + std::to_string(i) + "]");
      flops += part.flops;
      traffic += part.traffic;
    }
    const Task& task = *find_task(whole, name);
    EXPECT_NEAR(flops, task.flops, 1e-9 * task.flops);
    EXPECT_NEAR(static_cast<double>(traffic.count()), static_cast<double>(task.traffic.count()),
                1e-6 * static_cast<double>(task.traffic.count()));
  }
}

// What is not more than twice the largest update stays whole, and all but linear layers.
TEST(UpdateInParts, IsOfLargeLinearLayersOnly) {
  nets::Builder builder{"toy", {16, 8, 8}};
  const nets::NodeId conv =
      builder.convolution("conv", builder.input(), {.channels = 64, .kernel = nets::square(3)});
  const nets::NodeId x = builder.linear("fc1", conv, {.features = 32});
  const nets::Network net = builder.build(builder.linear("fc2", x, {.features = 16}));
  const MachineSizeModel size_model;
  const um::Bytes fc2 =
      size_model.parameter_bytes(LinearParameters{.out = 16, .in = {32, 1, 1}, .bias = true});
  const auto parts_of = [&](const std::string& name, um::Bytes largest_update) {
    const Step step =
        make_training_step(net, size_model, {.batch = 2, .largest_update = largest_update});
    return std::ranges::find(step.state, name + ".momentum", &StateBlock::name)->ids.size();
  };
  const um::Bytes half{fc2.count() / 2};
  EXPECT_EQ(parts_of("fc2", half), 1);
  EXPECT_EQ(parts_of("fc2", half - um::Bytes{1}), 2) << "32 inputs are two units of 16";
  EXPECT_GT(parts_of("fc1", half), 2);
  EXPECT_EQ(parts_of("conv", half), 1);
}

TEST(UpdateInParts, OfMicroBatchesAddsUpTheGradientsOfParts) {
  nets::Builder builder{"toy", {16, 8, 8}};
  const nets::Network net = builder.build(builder.linear("fc", builder.input(), {.features = 32}));
  const Step step =
      make_program(net, MachineSizeModel{}, {.batch = 4, .largest_update = um::Bytes{48'000}},
                   all_of(4, {.size = 2, .count = 2}));
  for (const std::string suffix : {"[0]", "[1]", "[2]"}) {
    const Task& weights = *find_task(step, "fc.backward_weights" + suffix + "#2");
    EXPECT_EQ(block_names(step, weights.writes), std::vector<std::string>{"fc.dw" + suffix + "#2"});
    const Task& sum = *(&weights + 1);
    EXPECT_EQ(sum.name, "fc.accumulate" + suffix + "#1");
    EXPECT_EQ(block_names(step, sum.writes), std::vector<std::string>{"fc.dw" + suffix});
    EXPECT_EQ(block_names(step, find_task(step, "fc.update" + suffix)->reads),
              (std::vector<std::string>{"fc", "fc.momentum" + suffix, "fc.dw" + suffix}));
  }
}

// 64 x 256 weights and 256 biases, 65 KiB, and 256 x 3 and 3, which are little.
nets::Network network() {
  nets::Builder net{"net", {64, 1, 1}};
  nets::NodeId x = net.relu("relu", net.linear("fc1", net.input(), {.features = 256}));
  return net.build(net.linear("fc2", x, {.features = 3}));
}
constexpr std::size_t kFloats = 64 * 256 + 256;

class DividedUpdates : public ::testing::Test {
 protected:
  [[nodiscard]] Step whole() const {
    return make_training_step(network_, model_, {.batch = 2, .optimizer = AdamOptions{}});
  }
  [[nodiscard]] Step divided(std::size_t rank, std::size_t ranks) const {
    const Step all = whole();
    Step step = all;
    divide_updates(step, model_, {.rank = rank, .ranks = ranks});
    return step;
  }

  const nets::Network network_ = network();
  const MachineSizeModel model_;
};

std::size_t place_of(const Step& step, const std::string& task) {
  const auto found = std::ranges::find(step.graph.tasks, task, &prefetch::Task::name);
  return static_cast<std::size_t>(found - step.graph.tasks.begin());
}

DataId block_of(const Step& step, const std::string& name) {
  const auto found = std::ranges::find(step.graph.data, name, &prefetch::DataBlock::name);
  return DataId(found - step.graph.data.begin());
}

TEST_F(DividedUpdates, UpdateASliceAndTakeAllOfThem) {
  const Step step = divided(1, 4);
  const std::size_t update = place_of(step, "fc1.update");
  ASSERT_LT(update, step.launches.size());
  // 1,040 units of 16 floats: 260 each.
  const auto& operation = std::get<UpdateParameters>(step.launches[update].operation);
  EXPECT_EQ(operation.part.slice, (FloatRange{kFloats / 4, kFloats / 2}));
  EXPECT_EQ(place_of(step, "fc1.take"), update + 1);
  EXPECT_TRUE(std::holds_alternative<TakeParameters>(step.launches[update + 1].operation));

  const DataId updated = block_of(step, "fc1.updated");
  EXPECT_EQ(step.graph[updated].lies_in, block_of(step, "fc1.dw"));
  EXPECT_EQ(step.graph.tasks[update].writes.front(), updated);
  EXPECT_EQ(step.graph.tasks[update + 1].reads, std::vector{updated});
  EXPECT_EQ(step.graph.tasks[update + 1].writes, std::vector{block_of(step, "fc1")});
}

TEST_F(DividedUpdates, KeepAQuarterOfWhatTheOptimizerKeeps) {
  const Step step = divided(3, 4);
  for (const char* name : {"fc1.exp_avg", "fc1.exp_avg_sq"}) {
    EXPECT_EQ(step.graph[block_of(step, name)].size, float_bytes(kFloats / 4)) << name;
  }
  EXPECT_EQ(step.graph[block_of(step, "fc1")].size, float_bytes(kFloats));
  const OptimizerBytes bytes = optimizer_bytes(step);
  const um::Bytes small = float_bytes(2 * (256 * 3 + 3));
  EXPECT_EQ(bytes.whole, float_bytes(2 * kFloats) + small);
  EXPECT_EQ(bytes.kept, float_bytes(2 * kFloats / 4) + small);
}

TEST_F(DividedUpdates, LeaveSmallBlocksWhole) {
  const Step step = divided(0, 2);
  const std::size_t update = place_of(step, "fc2.update");
  EXPECT_FALSE(std::get<UpdateParameters>(step.launches[update].operation).part.slice);
  EXPECT_EQ(place_of(step, "fc2.take"), step.graph.tasks.size());
}

// All ranks then have the same plans.
TEST_F(DividedUpdates, HaveTheSameGraphOnAllRanks) {
  for (const std::size_t rank : {1U, 2U}) {
    EXPECT_EQ(prefetch::fingerprint(divided(rank, 3).graph),
              prefetch::fingerprint(divided(0, 3).graph));
  }
}

TEST_F(DividedUpdates, OfOneRankAreWhole) {
  EXPECT_EQ(prefetch::fingerprint(divided(0, 1).graph), prefetch::fingerprint(whole().graph));
}

TEST_F(DividedUpdates, AreScatteredAndGathered) {
  Step step = divided(0, 2);
  exchange_gradients(step, {});
  ASSERT_EQ(step.graph.exchanges.size(), 2U);
  EXPECT_EQ(step.graph.exchanges[0].collective, prefetch::Collective::kReduceScatter);
  EXPECT_EQ(step.graph.exchanges[0].divided, std::vector{block_of(step, "fc1.dw")});
  EXPECT_EQ(step.graph.exchanges[1].collective, prefetch::Collective::kAllGather);
  EXPECT_EQ(step.graph.exchanges[1].blocks, std::vector{block_of(step, "fc1.updated")});
  EXPECT_EQ(step.gradients.size(), 2U);
}

}  // namespace
}  // namespace spillway
