#include "src/step/divided_updates.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "nets/builder.h"
#include "prefetch/task_graph.h"
#include "src/step/machine_size_model.h"
#include "src/step/step.h"
#include "src/step/sub_step.h"

namespace spillway {
namespace {

using prefetch::DataId;

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
    divide_updates(step, all, model_, {.rank = rank, .ranks = ranks});
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
  const auto& adam = std::get<AdamUpdate>(step.launches[update].operation);
  EXPECT_EQ(adam.part.slice, (FloatRange{kFloats / 4, kFloats / 2}));
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
  EXPECT_FALSE(std::get<AdamUpdate>(step.launches[update].operation).part.slice);
  EXPECT_EQ(place_of(step, "fc2.take"), step.graph.tasks.size());
}

// So that all of them have the same plans.
TEST_F(DividedUpdates, HaveTheSameGraphOnAllRanks) {
  for (const std::size_t rank : {1U, 2U}) {
    EXPECT_EQ(prefetch::fingerprint(divided(rank, 3).graph),
              prefetch::fingerprint(divided(0, 3).graph));
  }
}

TEST_F(DividedUpdates, OfOneRankAreWhole) {
  EXPECT_EQ(prefetch::fingerprint(divided(0, 1).graph), prefetch::fingerprint(whole().graph));
}

// A sub-step that does not update has as little state as the one that does.
TEST_F(DividedUpdates, ShrinkTheStateOfEverySubStep) {
  const Step all = whole();
  Step first = make_sub_step(all, SubStepPlace::kFirst, network_);
  divide_updates(first, all, model_, {.rank = 0, .ranks = 2});
  EXPECT_EQ(first.graph[block_of(first, "fc1.exp_avg")].size, float_bytes(kFloats / 2));
  EXPECT_EQ(place_of(first, "fc1.take"), first.graph.tasks.size());
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
