#include "src/step/step.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <map>
#include <set>
#include <string>

#include "nets/builder.h"
#include "nets/families/network_catalogue.h"
#include "prefetch/plan.h"
#include "prefetch/verify/dataflow.h"
#include "src/step/machine_size_model.h"
#include "tests/refusal.h"
#include "tests/src/step_tasks.h"

namespace spillway {
namespace {

using prefetch::DataId;
using prefetch::DataKind;
using prefetch::Phase;
using prefetch::Task;
using test::find_task;
using test::task_names;

class BuiltInStep : public testing::TestWithParam<const char*> {
 protected:
  [[nodiscard]] static nets::Network network() {
    const bool is_small = std::string{GetParam()} == "lenet";
    return nets::build_network(
        GetParam(), {.image = is_small ? nets::Shape{1, 28, 28} : nets::Shape{3, 75, 75}});
  }
  MachineSizeModel size_model;
  nets::Network net = network();
  Step training = make_training_step(net, size_model, {.batch = 2});
  Step evaluation = make_evaluation_step(net, size_model, {.batch = 2});
};

TEST_P(BuiltInStep, ReadsNothingThatWasNotWrittenBefore) {
  for (const Step* step : {&training, &evaluation}) {
    const auto runs = prefetch::runs_in_order(step->graph);
    const auto violation = prefetch::check_dataflow(step->graph, runs);
    EXPECT_FALSE(violation) << violation->reason;
  }
}

TEST_P(BuiltInStep, GivesTasksAndBlocksNamesOfTheirOwnAndSizes) {
  for (const Step* step : {&training, &evaluation}) {
    std::set<std::string> names;
    for (const Task& task : step->graph.tasks) EXPECT_TRUE(names.insert(task.name).second);
    names.clear();
    for (const prefetch::DataBlock& block : step->graph.data) {
      EXPECT_TRUE(names.insert(block.name).second) << block.name;
      EXPECT_GT(block.size, um::Bytes{}) << block.name;
    }
  }
}

// The launch of a task has the task's reads, then its writes; what is updated once is a write of
// the launch, but no move of the planner's.
TEST_P(BuiltInStep, LaunchesMatchTasksOperandForOperand) {
  for (const Step* step : {&training, &evaluation}) {
    ASSERT_EQ(step->launches.size(), step->graph.tasks.size());
    for (std::size_t t = 0; t < step->launches.size(); ++t) {
      const Task& task = step->graph.tasks[t];
      std::vector<DataId> wanted = task.reads;
      wanted.insert(wanted.end(), task.writes.begin(), task.writes.end());
      std::vector<DataId> operands = step->launches[t].operands;
      for (const DataId id : task.updates_once) EXPECT_EQ(std::erase(operands, id), 1U);
      EXPECT_EQ(operands, wanted) << task.name;
      EXPECT_EQ(task.is_recomputable, row_of(step->launches[t].operation).is_recomputable)
          << task.name;
    }
  }
}

// Between a gradient and the update there is at most what still needs the old parameters, the
// gradient of the layer's input; after the update nobody reads them but those of other parts.
TEST_P(BuiltInStep, UpdatesEachParameterOnceAsSoonAsItsGradientIsThere) {
  const std::vector<Task>& tasks = training.graph.tasks;
  const auto reads = [&](std::size_t t, DataId id) {
    return std::ranges::count(tasks[t].reads, id) > 0;
  };
  std::map<DataId, int> updates;
  for (std::size_t t = 0; t < tasks.size(); ++t) {
    if (tasks[t].phase != Phase::kUpdate) continue;
    const DataId parameters = tasks[t].writes.front();
    const DataId gradient = tasks[t].reads.back();
    ++updates[parameters];
    std::size_t before = t - 1;
    while (std::ranges::count(tasks[before].writes, gradient) == 0) {
      ASSERT_TRUE(reads(before, parameters)) << tasks[before].name;
      --before;
    }
    for (std::size_t later = t + 1; later < tasks.size(); ++later) {
      if (tasks[later].phase == Phase::kUpdate) continue;
      EXPECT_FALSE(reads(later, parameters)) << tasks[later].name;
    }
  }
  std::map<DataId, int> wanted;
  for (std::size_t i = 0; i < training.state.size(); ++i) {
    const StateBlock& block = training.state[i];
    if (block.role != StateRole::kParameters) continue;
    const StateBlock& momentum = training.state[i + 1];
    ASSERT_EQ(momentum.name, block.name + ".momentum");
    wanted[block.ids.front()] = static_cast<int>(momentum.ids.size());
  }
  EXPECT_EQ(updates, wanted);
}

TEST_P(BuiltInStep, StateIsOfKindStateAndGoesBySameNamesInEvaluation) {
  std::map<std::string, ParameterSpec> kept;
  for (const StateBlock& block : training.state) {
    for (const DataId id : block.ids) EXPECT_EQ(training.graph[id].kind, DataKind::kState);
    if (block.role != StateRole::kOptimizer) kept.emplace(block.name, block.spec);
  }
  std::map<std::string, ParameterSpec> used;
  for (const StateBlock& block : evaluation.state) used.emplace(block.name, block.spec);
  EXPECT_EQ(used, kept);
}

TEST_P(BuiltInStep, CountsTheNumbersOfTheNetwork) {
  std::size_t numbers = 0;
  for (const StateBlock& block : training.state) {
    if (block.role == StateRole::kParameters) numbers += element_count(block.spec);
  }
  EXPECT_EQ(numbers, nets::count_parameters(net));
}

TEST_P(BuiltInStep, EvaluationOnlyGoesForward) {
  for (const Task& task : evaluation.graph.tasks) EXPECT_EQ(task.phase, Phase::kForward);
  EXPECT_EQ(evaluation.graph[evaluation.result].size, um::Bytes{2 * sizeof(float)});
  EXPECT_EQ(training.graph[training.result].size, um::Bytes{2 * sizeof(float)});
}

INSTANTIATE_TEST_SUITE_P(Networks, BuiltInStep,
                         testing::Values("lenet", "resnet18", "vgg16", "alexnet", "googlenet",
                                         "inception-v3", "densenet121"));

// Two losses: one block has their sum; evaluation has neither the head nor its state.
TEST(TrainingStep, AddsTheLossesOfHeadsThatEvaluationLeavesOut) {
  nets::Builder builder{"heads", {3, 8, 8}};
  const nets::NodeId x = builder.convolution("conv", builder.input(), {.channels = 4});
  builder.auxiliary_loss("aux.loss", builder.linear("aux", x, {.features = 5}), 0.25F);
  const nets::Network net = builder.build(builder.linear("fc", x, {.features = 5}));
  const Step training = make_training_step(net, MachineSizeModel{}, {.batch = 2});
  const Task& aux = *find_task(training, "aux.loss.forward");
  const Task& main = *find_task(training, "loss.forward");
  EXPECT_EQ(std::ranges::count(aux.reads, training.result), 0);
  EXPECT_EQ(std::ranges::count(main.reads, training.result), 1);
  EXPECT_EQ(std::ranges::count(main.writes, training.result), 1);
  const auto violation =
      prefetch::check_dataflow(training.graph, prefetch::runs_in_order(training.graph));
  EXPECT_FALSE(violation) << violation->reason;
  EXPECT_NE(find_task(training, "conv.gradient"), nullptr);
  EXPECT_NE(find_task(training, "aux.update"), nullptr);

  const Step evaluation = make_evaluation_step(net, MachineSizeModel{}, {.batch = 2});
  EXPECT_EQ(task_names(evaluation),
            (std::vector<std::string>{"load", "conv.forward", "fc.forward", "loss.forward"}));
}

// image -> conv -> norm -> relu -> linear: norm takes the ReLU in.
nets::Network small_network() {
  nets::Builder builder{"small", {3, 8, 8}};
  nets::NodeId x = builder.convolution("conv", builder.input(), {.channels = 4});
  x = builder.batch_norm("norm", x);
  x = builder.relu("relu", x);
  return builder.build(builder.linear("fc", x, {.features = 5}));
}

TEST(TrainingStep, LoadsFirstUpdatesLastAndFusesReluIn) {
  const Step step = make_training_step(small_network(), MachineSizeModel{}, {.batch = 2});
  EXPECT_EQ(task_names(step).front(), "load");
  EXPECT_EQ(task_names(step).back(), "conv.update");
  EXPECT_EQ(find_task(step, "relu.forward"), nullptr);  // fused into norm
  const Task& norm = *find_task(step, "norm.forward");
  ASSERT_EQ(norm.updates_once.size(), 1U);
  EXPECT_EQ(step.graph[norm.updates_once[0]].name, "norm.running");
}

TEST(TrainingStep, HasNoGradientForTheImage) {
  const Step step = make_training_step(small_network(), MachineSizeModel{}, {.batch = 2});
  for (const Launch& launch : step.launches) {
    EXPECT_FALSE(std::holds_alternative<ConvolutionBackwardData>(launch.operation));
  }
}

// image -> pool -> relu: nothing to fuse it into, and nobody else reads the pool's output.
TEST(TrainingStep, WorksInPlaceWhereNobodyNeedsTheOldContent) {
  nets::Builder builder{"in place", {3, 8, 8}};
  nets::NodeId x = builder.convolution("conv", builder.input(), {.channels = 4});
  x = builder.pool("pool", x, {.kind = nets::PoolKind::kAverage});
  x = builder.relu("relu", x);
  const nets::Network net = builder.build(builder.linear("fc", x, {.features = 5}));
  const Step step = make_training_step(net, MachineSizeModel{}, {.batch = 2});
  const Task& relu = *find_task(step, "relu.forward");
  EXPECT_EQ(relu.reads, relu.writes);
}

// What comes before the first trained layer has no way back: nobody needs the image's gradient.
TEST(TrainingStep, MayBeginWithLayersThatTrainNothing) {
  using nets::NodeId;
  const std::map<std::string, std::function<NodeId(nets::Builder&)>> beginnings{
      {"flatten", [](nets::Builder& net) { return net.flatten("first", net.input()); }},
      {"pool", [](nets::Builder& net) { return net.pool("first", net.input(), {}); }},
      {"average", [](nets::Builder& net) { return net.global_average_pool("first", net.input()); }},
      {"relu", [](nets::Builder& net) { return net.relu("first", net.input()); }},
      {"dropout", [](nets::Builder& net) { return net.dropout("first", net.input(), {}); }},
      {"norm",
       [](nets::Builder& net) { return net.local_response_norm("first", net.input(), {}); }},
      {"concat",
       [](nets::Builder& net) {
         return net.concat("first", {net.input(), net.input()});
       }},
      {"crop", [](nets::Builder& net) { return net.crop("first", net.input(), net.input()); }},
      {"sum", [](nets::Builder& net) { return net.sum("first", net.input(), net.input()); }}};
  for (const auto& [name, begin] : beginnings) {
    nets::Builder builder{name, {3, 8, 8}};
    const NodeId hidden =
        builder.relu("relu", builder.linear("fc1", begin(builder), {.features = 7}));
    const nets::Network net = builder.build(builder.linear("fc2", hidden, {.features = 5}));
    const Step step = make_training_step(net, MachineSizeModel{}, {.batch = 2});
    const auto violation =
        prefetch::check_dataflow(step.graph, prefetch::runs_in_order(step.graph));
    EXPECT_FALSE(violation) << name << ": " << violation->reason;
    EXPECT_NE(find_task(step, "fc1.update"), nullptr) << name;
    EXPECT_EQ(find_task(step, "fc1.backward_data"), nullptr) << name;
    EXPECT_EQ(find_task(step, "first.backward"), nullptr) << name;
  }
}

// Names that users choose: those of other parts of a step, and what a block adds to a layer's name.
TEST(TrainingStep, RefusesLayersThatWouldGiveTwoPartsOneName) {
  for (const char* name : {"labels", "fc.momentum"}) {
    nets::Builder net{"toy", {3, 4, 4}};
    const nets::NodeId x = net.linear(name, net.input(), {.features = 5});
    const nets::Network network = net.build(net.linear("fc", x, {.features = 2}));
    EXPECT_EQ(test::refusal(
                  [&] { return make_training_step(network, MachineSizeModel{}, {.batch = 2}); }),
              "the layers of network toy make two parts of its step called '" + std::string{name} +
                  "'; give one of the layers another name");
  }
}

// No Builder makes one.
TEST(TrainingStep, TakesALossWithoutItsLabelsForABug) {
  nets::Builder builder{"toy", nets::tokens(6)};
  const nets::NodeId x =
      builder.add("wte", nets::Embedding{.vocabulary = 5, .features = 4}, {builder.input()});
  nets::Network network = builder.build(x, {.vocabulary = 5}, {});
  network.nodes.push_back(
      {.name = "first", .layer = nets::FirstToken{}, .inputs = {x}, .output = {.channels = 4}});
  network.nodes.push_back({.name = "late",
                           .layer = nets::SoftmaxCrossEntropy{},
                           .inputs = {nets::NodeId{3}},
                           .output = {.channels = 4}});
  EXPECT_THROW(static_cast<void>(make_training_step(network, MachineSizeModel{}, {.batch = 2})),
               um::ContractError);
}

// Each parameter, 4 bytes of it, has one number of SGD's beside it, and two of Adam's.
TEST(StepOptions, ChooseWhatTheOptimizerKeeps) {
  nets::Builder builder{"toy", {3, 4, 4}};
  const nets::Network net = builder.build(builder.linear("fc", builder.input(), {.features = 16}));
  const auto state_bytes = [&](const OptimizerOptions& optimizer) {
    const Step step =
        make_training_step(net, MachineSizeModel{}, {.batch = 2, .optimizer = optimizer});
    std::uint64_t bytes = 0;
    for (const StateBlock& block : step.state) bytes += step.graph[block.ids.front()].size.count();
    const prefetch::Task& update = *find_task(step, "fc.update");
    EXPECT_EQ(update.writes.size(), step.state.size());  // all of it, and reads the gradient too
    EXPECT_EQ(update.reads.size(), step.state.size() + 1);
    return bytes;
  };
  const std::uint64_t parameters = state_bytes(SgdOptions{}) / 2;
  EXPECT_GE(parameters, 4U * 16 * (48 + 1));
  EXPECT_EQ(state_bytes(AdamOptions{}), 3 * parameters);
}

TEST(StepOptions, ChooseTheConvolutionsAlgorithms) {
  const nets::Network net = nets::build_network("vgg16", {.image = nets::Shape{3, 64, 64}});
  const auto algorithms = [&](ConvolutionAlgorithm choice) {
    const Step step =
        make_training_step(net, MachineSizeModel{}, {.batch = 1, .convolution = choice});
    std::vector<std::string> names;
    for (const auto& algorithm : find_task(step, "conv1_1.forward")->algorithms) {
      names.push_back(algorithm.name);
    }
    return names;
  };
  EXPECT_EQ(algorithms(ConvolutionAlgorithm::kAuto),
            (std::vector<std::string>{"direct", "winograd"}));
  EXPECT_EQ(algorithms(ConvolutionAlgorithm::kDirect), std::vector<std::string>{"direct"});
  EXPECT_EQ(algorithms(ConvolutionAlgorithm::kWinograd), std::vector<std::string>{"winograd"});
}

}  // namespace
}  // namespace spillway
