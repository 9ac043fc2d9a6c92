#include "src/program/sub_step.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <variant>

#include "nets/builder.h"
#include "nets/families/published_networks.h"
#include "prefetch/block_sizes.h"
#include "prefetch/verify/dataflow.h"
#include "src/program/machine_size_model.h"
#include "tests/refusal.h"
#include "tests/src/step_tasks.h"

namespace spillway {
namespace {

using prefetch::DataId;
using prefetch::DataKind;
using prefetch::Phase;
using prefetch::Task;
using prefetch::TaskGraph;
using test::block_names;
using test::find_task;

nets::Network small_network(const std::string& last_layer = "fc") {
  nets::Builder builder{"small", {3, 8, 8}};
  const nets::NodeId x = builder.convolution("conv", builder.input(), {.channels = 4});
  return builder.build(builder.linear(last_layer, x, {.features = 5}));
}

class SubStepTest : public testing::Test {
 protected:
  [[nodiscard]] Step sub_step(SubStepPlace place) const {
    return make_sub_step(training, place, net);
  }
  [[nodiscard]] static DataKind kind_of(const Step& step, const std::string& name) {
    return test::find_block(step, name)->kind;
  }

  static constexpr SubStepPlace kPlaces[] = {SubStepPlace::kFirst, SubStepPlace::kMiddle,
                                             SubStepPlace::kLast};
  const MachineSizeModel size_model;
  const nets::Network net = small_network();
  const Step training = make_training_step(net, size_model, {.batch = 2});
};

TEST_F(SubStepTest, KeepsGradientsOfParametersAsState) {
  for (const char* name : {"conv.dw", "fc.dw"}) {
    EXPECT_EQ(kind_of(training, name), DataKind::kTensor);
  }
  EXPECT_TRUE(training.gradients.empty());
  for (const SubStepPlace place : kPlaces) {
    const Step step = sub_step(place);
    for (const char* name : {"conv.dw", "fc.dw"}) EXPECT_EQ(kind_of(step, name), DataKind::kState);
    EXPECT_EQ(block_names(step, step.gradients), (std::vector<std::string>{"fc.dw", "conv.dw"}));
  }
}

TEST_F(SubStepTest, WritesTheGradientsOfTheFirstSubBatchWhereTheyStay) {
  const Step first = sub_step(SubStepPlace::kFirst);
  const Task& weights = *find_task(first, "conv.backward_weights");
  EXPECT_EQ(block_names(first, weights.writes), std::vector<std::string>{"conv.dw"});
  EXPECT_EQ(find_task(first, "conv.accumulate"), nullptr);
}

TEST_F(SubStepTest, AddsTheGradientsOfOtherSubBatchesRightBehindTheTaskThatMakesThem) {
  for (const SubStepPlace place : {SubStepPlace::kMiddle, SubStepPlace::kLast}) {
    const Step step = sub_step(place);
    const Task& weights = *find_task(step, "conv.backward_weights");
    const Task& sum = *(&weights + 1);
    EXPECT_EQ(block_names(step, weights.writes), std::vector<std::string>{"conv.dw_part"});
    EXPECT_EQ(kind_of(step, "conv.dw_part"), DataKind::kTensor);
    EXPECT_EQ(sum.name, "conv.accumulate");
    EXPECT_EQ(block_names(step, sum.reads), (std::vector<std::string>{"conv.dw", "conv.dw_part"}));
    EXPECT_EQ(block_names(step, sum.writes), std::vector<std::string>{"conv.dw"});
    EXPECT_FALSE(sum.is_recomputable);
  }
}

// The table of tokens gets a gradient from the loss and one from its first layer.
TEST_F(SubStepTest, AddsAGradientOfTwoTasksOnce) {
  const nets::Network gpt =
      nets::gpt("tiny", {.layers = 1, .heads = 2, .width = 8, .context = 6}, nets::tokens(6), 5);
  const Step whole = make_training_step(gpt, size_model, {.batch = 2});
  const auto sums_of_table = [&](GradientParts parts) {
    const Step step = make_sub_step(whole, SubStepPlace::kMiddle, gpt, parts);
    return std::ranges::count(step.graph.tasks, "wte.accumulate", &Task::name);
  };
  EXPECT_EQ(sums_of_table(GradientParts::kWhole), 1);
  EXPECT_EQ(sums_of_table(GradientParts::kInPlace), 1);
}

TEST_F(SubStepTest, UpdatesOnlyAtTheEndOfABatch) {
  const auto updates = [](const Step& step) {
    return std::ranges::count(step.graph.tasks, Phase::kUpdate, &Task::phase);
  };
  EXPECT_EQ(updates(sub_step(SubStepPlace::kFirst)), 0);
  EXPECT_EQ(updates(sub_step(SubStepPlace::kMiddle)), 0);
  const Step last = sub_step(SubStepPlace::kLast);
  EXPECT_EQ(updates(last), 2);
  EXPECT_EQ(block_names(last, find_task(last, "fc.update")->reads),
            (std::vector<std::string>{"fc", "fc.momentum", "fc.dw"}));
}

// What planners see is what runs: as in whole training steps.
TEST_F(SubStepTest, LaunchesMatchTasksOperandForOperand) {
  for (const SubStepPlace place : kPlaces) {
    const Step step = sub_step(place);
    EXPECT_FALSE(check_dataflow(step.graph, prefetch::runs_in_order(step.graph)));
    ASSERT_EQ(step.launches.size(), step.graph.tasks.size());
    for (std::size_t t = 0; t < step.launches.size(); ++t) {
      const Task& task = step.graph.tasks[t];
      std::vector<DataId> wanted = task.reads;
      wanted.insert(wanted.end(), task.writes.begin(), task.writes.end());
      EXPECT_EQ(step.launches[t].operands, wanted) << task.name;
      EXPECT_EQ(std::holds_alternative<AccumulateGradients>(step.launches[t].operation),
                task.name.ends_with(".accumulate"));
    }
  }
}

TEST_F(SubStepTest, RefusesLayersWhoseNamesItNeeds) {
  const nets::Network odd = small_network("conv.dw_part");
  const Step step = make_training_step(odd, size_model, {.batch = 2});
  const std::string sentence =
      test::refusal([&] { return make_sub_step(step, SubStepPlace::kLast, odd); });
  EXPECT_NE(sentence.find("called 'conv.dw_part'"), std::string::npos) << sentence;
}

TEST_F(SubStepTest, SaysWhetherStatisticsAreOfTheBatch) {
  EXPECT_FALSE(normalizes_by_batch(training.graph));
  nets::Builder builder{"norm", {3, 8, 8}};
  const nets::NodeId x = builder.batch_norm("norm", builder.input());
  const nets::Network normed = builder.build(builder.linear("fc", x, {.features = 5}));
  EXPECT_TRUE(normalizes_by_batch(make_training_step(normed, size_model, {.batch = 2}).graph));
}

// ---- make_sub_steps

using SubSteps = SubStepTest;

// (times, samples) of each.
std::vector<std::pair<std::size_t, std::size_t>> shape_of(const std::vector<RepeatedStep>& steps) {
  std::vector<std::pair<std::size_t, std::size_t>> shape;
  for (const RepeatedStep& part : steps) shape.emplace_back(part.times, part.batch);
  return shape;
}

TEST_F(SubSteps, OfAWholeBatchAreTheTrainingStep) {
  const auto steps = make_sub_steps(net, size_model, {.batch = 7}, prefetch::cut(7, 7));
  EXPECT_EQ(shape_of(steps), (std::vector<std::pair<std::size_t, std::size_t>>{{1, 7}}));
  EXPECT_EQ(fingerprint(steps[0].step.graph),
            fingerprint(make_training_step(net, size_model, {.batch = 7}).graph));
}

// 7 in parts of at most 4 are 4 and 3; of at most 3: 3, 3, 1; of at most 2: 2, 2, 2, 1; 6 in parts
// of at most 2: three of 2.
TEST_F(SubSteps, HoldEverySampleOnce) {
  using Shape = std::vector<std::pair<std::size_t, std::size_t>>;
  const auto shape = [&](std::size_t batch, std::size_t size) {
    return shape_of(make_sub_steps(net, size_model, {.batch = batch}, prefetch::cut(batch, size)));
  };
  EXPECT_EQ(shape(7, 4), (Shape{{1, 4}, {1, 3}}));
  EXPECT_EQ(shape(7, 3), (Shape{{1, 3}, {1, 3}, {1, 1}}));
  EXPECT_EQ(shape(7, 2), (Shape{{1, 2}, {2, 2}, {1, 1}}));
  EXPECT_EQ(shape(6, 2), (Shape{{1, 2}, {1, 2}, {1, 2}}));
}

TEST_F(SubSteps, HaveTheSamplesThatTheyAreFor) {
  for (const RepeatedStep& part :
       make_sub_steps(net, size_model, {.batch = 7}, prefetch::cut(7, 3))) {
    EXPECT_EQ(std::get<LoadBatch>(part.step.launches[0].operation).x.batch, part.batch);
  }
}

}  // namespace
}  // namespace spillway
