// The step of one of several ranks that train together.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "nets/families/network_catalogue.h"
#include "prefetch/gradient_exchange.h"
#include "prefetch/interconnect.h"
#include "src/plan/workload.h"
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

Step one_rank(const OptimizerOptions& optimizer) {
  return make_training_step(nets::build_network("alexnet", {}), MachineSizeModel{},
                            {.batch = 2, .optimizer = optimizer});
}

// Returns the steps of one of several ranks, each of which trains a batch whole.
std::unique_ptr<const Workload> shared(const nets::Network& network, const StepOptions& options,
                                       const prefetch::BucketRule& rule = {},
                                       const OptimizerDivision& division = {},
                                       const Workload::NearMemory& beside = {}) {
  return std::make_unique<const Workload>(network, MachineSizeModel{}, options, std::nullopt,
                                          Features{.division = division, .buckets = rule}, beside);
}

std::unique_ptr<const Workload> with(const Workload& workload, StatePlace state) {
  return workload.with(MachineSizeModel{}, workload.features().with(state));
}

void expect_all_exchanged(const Step& step) {
  um::Bytes parameters;
  for (const StateBlock& block : step.state) {
    if (block.role != StateRole::kParameters) continue;
    for (const DataId id : block.ids) parameters += step.graph[id].size;
  }
  um::Bytes exchanged;
  for (const prefetch::GradientExchange& exchange : step.graph.exchanges) {
    exchanged += exchanged_bytes(step.graph, exchange).all();
  }
  EXPECT_EQ(exchanged, parameters);
}

Step several_ranks(const OptimizerOptions& optimizer) {
  Step step = one_rank(optimizer);
  exchange_gradients(step, {});
  return step;
}

// A launch has its task's operands, but for those that only the first run updates.
void expect_launches_of_tasks(const Step& step) {
  ASSERT_EQ(step.launches.size(), step.graph.tasks.size());
  for (std::size_t t = 0; t < step.launches.size(); ++t) {
    const Task& task = step.graph.tasks[t];
    for (const DataId id : task.reads) {
      EXPECT_EQ(std::ranges::count(step.launches[t].operands, id) > 0, true) << task.name;
    }
    for (const DataId id : task.writes) {
      EXPECT_EQ(std::ranges::count(step.launches[t].operands, id) > 0, true) << task.name;
    }
  }
}

// Momentum, or a norm over all gradients before the first update.
class ExchangedStep : public testing::TestWithParam<float> {
 protected:
  OptimizerOptions optimizer = SgdOptions{.momentum = 0.9F, .clip_norm = GetParam()};
};

TEST_P(ExchangedStep, HasTheSameTasksWithUpdatesLast) {
  const Step one = one_rank(optimizer);
  const Step several = several_ranks(optimizer);
  expect_launches_of_tasks(several);
  std::vector<std::string> before;
  std::vector<std::string> after;
  for (const Task& task : one.graph.tasks) before.push_back(task.name);
  for (const Task& task : several.graph.tasks) after.push_back(task.name);
  std::ranges::sort(before);
  std::ranges::sort(after);
  EXPECT_EQ(after, before);
  EXPECT_TRUE(std::ranges::is_partitioned(
      several.graph.tasks, [](const Task& task) { return task.phase != Phase::kUpdate; }));
}

// Each trained layer's, once: as many bytes as parameters. With a loss over a vocabulary, the
// gradients of its table, or its biases, are made going forward.
TEST_P(ExchangedStep, ExchangesAllGradientsOnce) {
  expect_all_exchanged(several_ranks(optimizer));
  for (const char* name : {"llama:2,4,2,64,96,32", "bert-base"}) {
    SCOPED_TRACE(name);
    const auto several =
        shared(nets::build_network(name, {}), {.batch = 2, .optimizer = optimizer});
    expect_all_exchanged(several->training());
    const auto far = with(*several, StatePlace::kMovable);
    expect_all_exchanged(far->training());
  }
}

// Updates follow a bucket later where state may be far.
TEST_P(ExchangedStep, MovesItsStateLikeAnyOther) {
  const auto several =
      shared(nets::build_network("alexnet", {}), {.batch = 2, .optimizer = optimizer});
  const auto far = with(*several, StatePlace::kMovable);
  expect_launches_of_tasks(far->training());
  EXPECT_EQ(far->training().graph.exchanges.size(), several->training().graph.exchanges.size());
  const bool has_norm = GetParam() > 0;  // updates wait for all gradients
  EXPECT_EQ(std::ranges::is_partitioned(far->training().graph.tasks,
                                        [](const Task& task) {
                                          return task.phase != Phase::kUpdate ||
                                                 task.name.find(".squares") != std::string::npos;
                                        }),
            has_norm);
}

// Its updates are ordered once, when exchanges and movable state are known.
TEST_P(ExchangedStep, MovesItsStateWithSlicesOfTheOptimizersNumbers) {
  const auto several = shared(nets::build_network("alexnet", {}),
                              {.batch = 2, .optimizer = optimizer}, {}, {.ranks = 4});
  const auto far = with(*several, StatePlace::kMovable);
  expect_launches_of_tasks(far->training());
  EXPECT_EQ(far->training().graph.exchanges.size(), several->training().graph.exchanges.size());
}

// As if the other buckets had been asked for at once; with slices of the optimizer's numbers, too.
TEST_P(ExchangedStep, IsTheSameInOtherBucketsAfterwards) {
  const prefetch::BucketRule small{.first = um::Bytes{1ULL << 20U},
                                   .others = um::Bytes{5ULL << 20U}};
  const nets::Network network = nets::build_network("resnet18", {});
  const StepOptions options{.batch = 2, .optimizer = optimizer};
  for (const std::size_t ranks : {1U, 4U}) {
    const auto usual = shared(network, options, {}, {.ranks = ranks},
                              [](const Step& /*step*/) { return um::Bytes{1ULL << 20U}; });
    const auto expected = shared(network, options, small, {.ranks = ranks});
    const auto changed = usual->with(MachineSizeModel{}, usual->features().with(small));
    ASSERT_GT(expected->training().graph.exchanges.size(),
              usual->training().graph.exchanges.size());
    EXPECT_EQ(fingerprint(changed->training().graph), fingerprint(expected->training().graph));
    EXPECT_EQ(changed->training().gradients, expected->training().gradients);
    expect_launches_of_tasks(changed->training());
    EXPECT_EQ(changed->need().smallest, expected->need().smallest + um::Bytes{1ULL << 20U});
  }
}

// A task sends a copy of each sum that the far side needs. Exchanges are the same, and begin behind
// the same tasks.
TEST(ExchangedLlama, UpdatesOnTheFarSideWhatOneRankDoes) {
  const nets::Network network = nets::build_network("llama:2,4,2,64,96,32", {.classes = 100'000});
  const StepOptions options{.batch = 2, .optimizer = AdamOptions{.decoupled = true}};
  const Workload near{network, MachineSizeModel{}, options};
  const auto alone = with(near, StatePlace::kUpdatedFar);
  const auto several = shared(network, options);
  const auto far = with(*several, StatePlace::kUpdatedFar);
  const prefetch::TaskGraph& graph = far->training().graph;
  expect_launches_of_tasks(far->training());
  expect_all_exchanged(far->training());
  ASSERT_EQ(graph.far_updates.size(), alone->training().graph.far_updates.size());
  for (const prefetch::FarUpdate& update : graph.far_updates) {
    const auto sends = [&](const Task& task) {
      return task.name.find(".send") != std::string::npos && task.writes.front() == update.gradient;
    };
    EXPECT_EQ(std::ranges::count_if(graph.tasks, sends), 1) << update.name;
    EXPECT_EQ(graph[update.gradient].size,
              graph[std::ranges::find_if(graph.tasks, sends)->reads.front()].size);
  }
  const prefetch::TaskGraph& before = several->training().graph;
  for (std::size_t e = 0; e < graph.exchanges.size(); ++e) {
    EXPECT_EQ(graph[graph.exchanges[e].ready].name, before[before.exchanges[e].ready].name);
  }
}

INSTANTIATE_TEST_SUITE_P(Optimizers, ExchangedStep, testing::Values(0.0F, 1.0F));

}  // namespace
}  // namespace spillway
