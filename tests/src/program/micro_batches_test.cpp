#include "src/program/micro_batches.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <variant>

#include "nets/builder.h"
#include "nets/families/published_networks.h"
#include "prefetch/block_sizes.h"
#include "prefetch/verify/dataflow.h"
#include "src/program/machine_size_model.h"
#include "src/program/passes.h"
#include "tests/refusal.h"
#include "tests/src/step_tasks.h"

namespace spillway {
namespace {

using prefetch::DataId;
using prefetch::DataKind;
using prefetch::Phase;
using prefetch::Task;
using prefetch::TaskGraph;
using prefetch::TaskId;
using test::block_names;
using test::find_task;

nets::Network small_network(const std::string& last_layer = "fc") {
  nets::Builder builder{"small", {3, 8, 8}};
  const nets::NodeId x = builder.convolution("conv", builder.input(), {.channels = 4});
  return builder.build(builder.linear(last_layer, x, {.features = 5}));
}

nets::Network normed_network() {
  nets::Builder builder{"norm", {3, 8, 8}};
  const nets::NodeId x = builder.batch_norm("norm", builder.input());
  return builder.build(builder.linear("fc", x, {.features = 5}));
}

class MicroBatchesTest : public testing::Test {
 protected:
  [[nodiscard]] Step program(const nets::Network& network, std::size_t batch,
                             std::size_t size) const {
    return make_program(network, size_model, {.batch = batch},
                        all_of(batch, prefetch::cut(batch, size)));
  }
  // The program of `own` micro-batches of two samples each.
  [[nodiscard]] Step part(std::size_t count, MicroBatchRange own) const {
    return make_program(net, size_model, {.batch = 2 * count},
                        {.batch = 2 * count, .size = 2, .tree = SumTree{count}, .own = own});
  }
  [[nodiscard]] static std::vector<std::string> sums_of(const Step& step, const char* stem) {
    std::vector<std::string> sums;
    for (const Task& task : step.graph.tasks) {
      if (!task.name.starts_with(stem)) continue;
      const std::vector<std::string> names = block_names(step, task.reads);
      sums.push_back(names[0] + " + " + names[1]);
    }
    return sums;
  }

  const MachineSizeModel size_model;
  const nets::Network net = small_network();
};

TEST_F(MicroBatchesTest, OfAWholeBatchAreTheTrainingStep) {
  EXPECT_EQ(fingerprint(program(net, 7, 7).graph),
            fingerprint(make_training_step(net, size_model, {.batch = 7}).graph));
}

// 7 in parts of at most 3 are 3, 3 and 1.
TEST_F(MicroBatchesTest, LoadEverySampleOnce) {
  const Step step = program(net, 7, 3);
  std::vector<std::pair<std::size_t, std::size_t>> loads;  // the first sample, and how many
  for (const Launch& launch : step.launches) {
    const auto* const load = std::get_if<LoadBatch>(&launch.operation);
    if (load == nullptr) continue;
    loads.emplace_back(load->first_sample, load->x.batch);
    EXPECT_EQ(load->staged_samples, 7U);
  }
  EXPECT_EQ(loads, (std::vector<std::pair<std::size_t, std::size_t>>{{0, 3}, {3, 3}, {6, 1}}));
  EXPECT_EQ(step.results.size(), 3U);
}

TEST_F(MicroBatchesTest, AddTheirGradientsInTheOrderOfATree) {
  EXPECT_EQ(sums_of(program(net, 10, 2), "conv.accumulate"),
            (std::vector<std::string>{"conv.dw + conv.dw#2", "conv.dw#3 + conv.dw#4",
                                      "conv.dw + conv.dw#3", "conv.dw + conv.dw#5"}));
}

TEST_F(MicroBatchesTest, AddAGradientRightBehindTheTaskThatCompletesIt) {
  const Step step = program(net, 4, 2);
  const Task& weights = *find_task(step, "conv.backward_weights#2");
  const Task& sum = *(&weights + 1);
  EXPECT_EQ(block_names(step, weights.writes), std::vector<std::string>{"conv.dw#2"});
  EXPECT_EQ(sum.name, "conv.accumulate#1");
  EXPECT_EQ(block_names(step, sum.writes), std::vector<std::string>{"conv.dw"});
  EXPECT_FALSE(sum.is_recomputable);
}

// The table of tokens gets a gradient from the loss and one from its first layer.
TEST_F(MicroBatchesTest, AddAGradientOfTwoTasksOnce) {
  const nets::Network gpt =
      nets::gpt("tiny", {.layers = 1, .heads = 2, .width = 8, .context = 6}, nets::tokens(6), 5);
  EXPECT_EQ(sums_of(program(gpt, 4, 2), "wte.accumulate").size(), 1U);
}

TEST_F(MicroBatchesTest, UpdateOnceWithTheSums) {
  const Step step = program(net, 6, 2);
  EXPECT_EQ(std::ranges::count(step.graph.tasks, Phase::kUpdate, &Task::phase), 2);
  EXPECT_EQ(block_names(step, find_task(step, "fc.update")->reads),
            (std::vector<std::string>{"fc", "fc.momentum", "fc.dw"}));
  EXPECT_TRUE(step.gradients.empty());
}

// The nodes of the tree over five micro-batches within [1, 4) are [1, 2) and [2, 4): the first
// waits for the ranks to meet.
TEST_F(MicroBatchesTest, OfOneRankLeaveTheSumsThatWaitForOthers) {
  const Step step = part(5, {.first = 1, .end = 4});
  ASSERT_EQ(step.waiting.size(), 2U);
  for (const WaitingSum& waiting : step.waiting) {
    EXPECT_EQ(waiting.node, 0U);
    EXPECT_EQ(step.graph[waiting.block].kind, DataKind::kState);
    EXPECT_EQ(step.graph[waiting.block].size, step.graph[waiting.sum].size);
    const std::string name = step.graph[waiting.block].name;
    EXPECT_EQ(step.graph[waiting.sum].name, name + "#2");
  }
  EXPECT_EQ(sums_of(step, "conv.accumulate"), std::vector<std::string>{"conv.dw#2 + conv.dw#3"});
  EXPECT_TRUE(part(4, {.first = 2, .end = 4}).waiting.empty());
}

// Each has running statistics of its own; those of the state are left to the end of the batch.
TEST_F(MicroBatchesTest, LeaveRunningStatisticsEach) {
  const Step step = program(normed_network(), 4, 2);
  ASSERT_EQ(step.statistics.size(), 2U);
  EXPECT_EQ(block_names(step, step.statistics[0]), std::vector<std::string>{"norm.running#1"});
  EXPECT_EQ(block_names(step, find_task(step, "norm.forward#2")->updates_once),
            std::vector<std::string>{"norm.running#2"});
  for (const Task& task : step.graph.tasks) {
    EXPECT_EQ(std::ranges::count(block_names(step, task.updates_once), "norm.running"), 0);
  }
  EXPECT_TRUE(program(normed_network(), 4, 4).statistics.empty());
}

// Twenty micro-batches have no more always near than two, but for results, and sums that wait: at
// most log2(20) + 1 of them.
TEST_F(MicroBatchesTest, ShareTheMemoryOfSmallTensors) {
  const um::Bytes page{2U << 20U};
  const auto pinned = [&](std::size_t count) {
    return prefetch::BlockSizes{program(net, 2 * count, 2).graph, page}.pinned();
  };
  um::Bytes gradients;
  const Step step = program(net, 4, 2);
  for (const char* name : {"conv.dw", "fc.dw"}) gradients += test::find_block(step, name)->size;
  EXPECT_LE(pinned(20), pinned(2) + 18U * prefetch::kNearAlignment + 4U * gradients);
}

// Planners see the operands that run, as in whole training steps.
TEST_F(MicroBatchesTest, LaunchesMatchTasksOperandForOperand) {
  for (const nets::Network& network : {small_network(), normed_network()}) {
    const Step step = program(network, 10, 4);
    EXPECT_FALSE(check_dataflow(step.graph, prefetch::runs_in_order(step.graph)));
    ASSERT_EQ(step.launches.size(), step.graph.tasks.size());
    for (std::size_t t = 0; t < step.launches.size(); ++t) {
      const Task& task = step.graph.tasks[t];
      std::vector<DataId> wanted = task.reads;
      wanted.insert(wanted.end(), task.writes.begin(), task.writes.end());
      std::vector<DataId> operands = step.launches[t].operands;
      std::erase_if(operands, [&](DataId id) {
        return std::ranges::find(task.updates_once, id) != task.updates_once.end();
      });
      EXPECT_EQ(operands, wanted) << task.name;
    }
  }
}

TEST_F(MicroBatchesTest, AreTimedByTheFirstOfTheirSize) {
  const Step step = program(net, 7, 3);
  const std::vector<TaskId> alike = first_alike(step.graph);
  std::map<std::string, std::string> first;
  for (std::size_t t = 0; t < alike.size(); ++t) {
    first[step.graph.tasks[t].name] = step.graph[alike[t]].name;
  }
  EXPECT_EQ(first["conv.forward"], "conv.forward");
  EXPECT_EQ(first["conv.forward#2"], "conv.forward");
  EXPECT_EQ(first["conv.forward#3"], "conv.forward#3");  // has a sample alone
  EXPECT_EQ(first["conv.accumulate#2"], "conv.accumulate#1");
}

TEST_F(MicroBatchesTest, RefuseLayersWhoseNamesTheyNeed) {
  nets::Builder builder{"odd", {3, 8, 8}};
  const nets::NodeId x = builder.convolution("conv", builder.input(), {.channels = 4});
  const nets::NodeId y = builder.convolution("conv.dw#2", x, {.channels = 4});
  const nets::Network odd = builder.build(builder.linear("fc", y, {.features = 5}));
  const std::string sentence = test::refusal([&] { return program(odd, 4, 2); });
  EXPECT_NE(sentence.find("called 'conv.dw#2'"), std::string::npos) << sentence;
}

TEST_F(MicroBatchesTest, SaysWhetherStatisticsAreOfTheBatch) {
  EXPECT_FALSE(normalizes_by_batch(program(net, 2, 2).graph));
  EXPECT_TRUE(normalizes_by_batch(program(normed_network(), 2, 2).graph));
}

}  // namespace
}  // namespace spillway
