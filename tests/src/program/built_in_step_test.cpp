// What holds for the steps of all networks, looked at in some of the catalogue.

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "nets/families/network_catalogue.h"
#include "prefetch/plan.h"
#include "prefetch/verify/dataflow.h"
#include "src/program/machine_size_model.h"
#include "src/program/step.h"

namespace spillway {
namespace {

using prefetch::DataId;
using prefetch::DataKind;
using prefetch::Phase;
using prefetch::Task;

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
  EXPECT_EQ(evaluation.graph[evaluation.results.front()].size,
            um::Bytes{2 * sizeof(float) + 2 * sizeof(JudgedSample)});  // of a batch of two
  EXPECT_EQ(training.graph[training.results.front()].size, um::Bytes{2 * sizeof(float)});
}

INSTANTIATE_TEST_SUITE_P(Networks, BuiltInStep,
                         testing::Values("lenet", "resnet18", "vgg16", "alexnet", "googlenet",
                                         "inception-v3", "densenet121"));

}  // namespace
}  // namespace spillway
