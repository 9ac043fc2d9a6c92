// Steps of which some layers are frozen.
#include "src/step/unread_tasks.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "prefetch/plan.h"
#include "prefetch/verify/dataflow.h"
#include "src/host/host_backend.h"
#include "src/step/step.h"
#include "tests/refusal.h"
#include "tests/src/small_training.h"

namespace spillway {
namespace {

// conv, norm with ReLU, fc.
Step step_with(const std::vector<std::string>& frozen) {
  const host::HostBackend backend{1};
  return make_training_step(test::small_network(), backend, {.batch = 2, .frozen = frozen});
}

bool has_task(const Step& step, const std::string& name) {
  return std::ranges::count(step.graph.tasks, name, &prefetch::Task::name) > 0;
}

bool has_block(const Step& step, const std::string& name) {
  return std::ranges::count(step.graph.data, name, &prefetch::DataBlock::name) > 0;
}

TEST(FrozenLayers, HaveNoGradientNoUpdateAndNoOptimizerState) {
  const Step step = step_with({"conv"});
  for (const char* task : {"conv.backward_weights", "conv.update"})
    EXPECT_FALSE(has_task(step, task));
  for (const char* block : {"conv.dw", "conv.momentum"}) EXPECT_FALSE(has_block(step, block));
  for (const char* task : {"conv.forward", "norm.backward", "norm.update", "fc.update"}) {
    EXPECT_TRUE(has_task(step, task)) << task;
  }
  EXPECT_EQ(step.launches.size(), step.graph.tasks.size());
}

TEST(FrozenLayers, AtTheBeginningNeedNoGradientOfWhatTheyMake) {
  const Step step = step_with({"conv", "norm"});
  for (const char* task : {"norm.backward", "norm.update", "fc.backward_data"}) {
    EXPECT_FALSE(has_task(step, task)) << task;
  }
  EXPECT_TRUE(has_task(step, "fc.backward_weights"));
  EXPECT_FALSE(has_block(step, "fc.dx"));
}

// Blocks are numbered anew, and still those that the launches mean.
TEST(FrozenLayers, LeaveAStepWhoseBlocksAreThoseOfItsTasks) {
  const Step whole = step_with({});
  const Step step = step_with({"c*v"});
  for (std::size_t t = 0; t < step.graph.tasks.size(); ++t) {
    const prefetch::Task& task = step.graph.tasks[t];
    const auto same = std::ranges::find(whole.graph.tasks, task.name, &prefetch::Task::name);
    ASSERT_NE(same, whole.graph.tasks.end());
    const Launch& launch =
        whole.launches[static_cast<std::size_t>(same - whole.graph.tasks.begin())];
    ASSERT_EQ(step.launches[t].operands.size(), launch.operands.size());
    for (std::size_t i = 0; i < launch.operands.size(); ++i) {
      EXPECT_EQ(step.graph[step.launches[t].operands[i]].name,
                whole.graph[launch.operands[i]].name);
    }
  }
  EXPECT_EQ(step.graph[step.result].name, "result");
}

TEST(FrozenLayers, AreCounted) {
  // 4 kernels of 9 weights and a bias.
  const FrozenParameters frozen = count_frozen(step_with({"conv"}));
  EXPECT_EQ(frozen.layers, 1U);
  EXPECT_EQ(frozen.parameters, 40U);
  EXPECT_EQ(count_frozen(step_with({})).layers, 0U);
}

TEST(FrozenLayers, AreSomeButNotAll) {
  const auto refused = [](const char* pattern) {
    return test::refusal([&] { return step_with({"conv", pattern}); });
  };
  EXPECT_NE(refused("cnv").find("no layer with parameters is called 'cnv'"), std::string::npos);
  EXPECT_EQ(refused("*"), "all layers are frozen: nothing is left to train");
  EXPECT_EQ(refused("norm"), "accepted");
}

}  // namespace
}  // namespace spillway
