#include "src/program/gradients.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>
#include <variant>
#include <vector>

#include "nets/builder.h"
#include "nets/families/network_catalogue.h"
#include "prefetch/planner.h"
#include "src/program/machine_size_model.h"
#include "src/program/step.h"
#include "tests/src/step_tasks.h"

namespace spillway {
namespace {

using prefetch::DataId;
using prefetch::Task;
using test::find_task;
using test::task_names;

// Two layers read conv's output: their gradients are added before conv takes them.
TEST(Gradients, AddsTheGradientsOfBranches) {
  nets::Builder builder{"branches", {3, 8, 8}};
  const nets::NodeId x = builder.convolution("conv", builder.input(), {.channels = 4});
  const nets::NodeId a = builder.convolution("a", x, {.channels = 4});
  const nets::NodeId b = builder.convolution("b", x, {.channels = 4});
  const nets::Network net =
      builder.build(builder.linear("fc", builder.sum("sum", a, b), {.features = 5}));
  const Step step = make_training_step(net, MachineSizeModel{}, {.batch = 2});
  int additions = 0;
  for (const Launch& launch : step.launches) {
    additions += std::holds_alternative<AddGradients>(launch.operation) ? 1 : 0;
  }
  EXPECT_EQ(additions, 1);
  const Task& add = *find_task(step, "conv.gradient");
  std::set<std::string> parts;
  for (const DataId id : add.reads) parts.insert(step.graph[id].name);
  EXPECT_EQ(parts.size(), 2U);  // one of a, one of b
  const auto names = task_names(step);
  const auto at = [&](const char* name) { return std::ranges::find(names, name); };
  EXPECT_LT(at("conv.gradient"), at("conv.update"));
  EXPECT_LT(at("a.update"), at("conv.gradient"));
  EXPECT_LT(at("b.update"), at("conv.gradient"));
}

// sum passes one gradient block on to both of its sides. The first taker, the ReLU of b, must leave
// it whole for the second, the ReLU of a, which may write over it.
TEST(Gradients, OverwritesAGradientOnlyInItsLastReader) {
  nets::Builder builder{"shared", {3, 8, 8}};
  const nets::NodeId x = builder.convolution("conv", builder.input(), {.channels = 4});
  const nets::NodeId a = builder.relu("a", builder.pool("pa", x, {}));
  const nets::NodeId b = builder.relu("b", builder.pool("pb", x, {}));
  const nets::Network net =
      builder.build(builder.linear("fc", builder.sum("sum", a, b), {.features = 5}));
  const Step step = make_training_step(net, MachineSizeModel{}, {.batch = 2});
  const Task& first = *find_task(step, "b.gradient");
  const Task& second = *find_task(step, "a.gradient");
  const DataId shared = first.reads.back();  // y, dy
  EXPECT_EQ(second.reads.back(), shared);
  EXPECT_NE(first.writes.front(), shared);
  EXPECT_EQ(second.writes.front(), shared);
  EXPECT_LT(&first, &second);
}

// Two norms are summed, and two convolutions read the sum: its gradient comes in two parts.
nets::Network sum_of_norms() {
  nets::Builder builder{"residual", {3, 8, 8}};
  const nets::NodeId x = builder.convolution("conv", builder.input(), {.channels = 4});
  const nets::NodeId a = builder.batch_norm("a", builder.convolution("ca", x, {.channels = 4}));
  const nets::NodeId b = builder.batch_norm("b", builder.convolution("cb", x, {.channels = 4}));
  const nets::NodeId sum = builder.relu("relu", builder.sum("sum", a, b));
  const nets::NodeId c = builder.convolution("c", sum, {.channels = 4});
  const nets::NodeId d = builder.convolution("d", sum, {.channels = 4});
  return builder.build(builder.linear("fc", builder.sum("sum2", c, d), {.features = 5}));
}

// Each norm may write over the gradient that it gets, since the other has one of its own.
TEST(Gradients, LeavesTheGradientOfASumInBothBlocksForSidesThatWriteOverIt) {
  const nets::Network net = sum_of_norms();
  const Step step = make_training_step(net, MachineSizeModel{}, {.batch = 2});
  const Task& gradient = *find_task(step, "relu.gradient");
  ASSERT_EQ(gradient.writes.size(), 2U);
  EXPECT_NE(gradient.writes[0], gradient.writes[1]);
  ASSERT_EQ(gradient.reads.size(), 3U);
  EXPECT_EQ(step.graph[gradient.reads[2]].name, "sum.mask");  // y is not read
  for (const char* norm : {"a.backward", "b.backward"}) {
    const Task& backward = *find_task(step, norm);
    EXPECT_EQ(backward.writes[0], backward.reads[1]) << norm;  // dx over dy
  }
  EXPECT_NE(find_task(step, "a.backward")->writes[0], find_task(step, "b.backward")->writes[0]);
  // Convolutions write over nothing: c and d share one block.
  EXPECT_EQ(find_task(step, "c.backward_weights")->reads[1],
            find_task(step, "d.backward_weights")->reads[1]);
}

// No task has a third tensor of 16 KiB beside what it reads and makes: masks are a 32nd of one.
TEST(Gradients, OfSumsAndNormsNeedTwoOfTheirTensorsAtATime) {
  const nets::Network net = sum_of_norms();
  const Step step = make_training_step(net, MachineSizeModel{}, {.batch = 16});
  const um::Bytes tensor{std::size_t{16} * 4 * 8 * 8 * sizeof(float)};
  const prefetch::BlockSizes sizes{step.graph, um::Bytes{256}};
  const um::Bytes movable = prefetch::near_need(step.graph, sizes).smallest - sizes.pinned();
  EXPECT_GE(movable, tensor + tensor);
  EXPECT_LT(movable, tensor + tensor + um::Bytes{tensor.count() / 4});
}

// Four branches: as soon as two of their gradients are there they are one.
TEST(Gradients, NeverKeepsMoreThanTwoPartsOfAGradient) {
  nets::Builder builder{"four", {3, 8, 8}};
  const nets::NodeId x =
      builder.relu("relu", builder.convolution("conv", builder.input(), {.channels = 4}));
  std::vector<nets::NodeId> branches;
  for (const char* name : {"a", "b", "c", "d"}) {
    branches.push_back(builder.convolution(name, x, {.channels = 4}));
  }
  const nets::NodeId all = builder.concat("all", branches);
  const nets::Network net = builder.build(builder.linear("fc", all, {.features = 5}));
  const Step step = make_training_step(net, MachineSizeModel{}, {.batch = 2});
  const std::vector<std::string> names = task_names(step);
  const auto from = std::ranges::find(names, "d.backward_data");
  EXPECT_EQ(
      std::vector(from, from + 14),
      (std::vector<std::string>{
          "d.backward_data", "d.update", "c.backward_weights", "c.backward_data", "c.update",
          "relu.gradient", "b.backward_weights", "b.backward_data", "b.update", "relu.gradient2",
          "a.backward_weights", "a.backward_data", "a.update", "relu.gradient3"}));
  const Task& last = *find_task(step, "relu.gradient3");
  EXPECT_EQ(last.reads.size(), 3U);  // the ReLU's output, too: its part of the way is fused in
}

// The gradient of a concat reaches a part that has one from elsewhere in place: b's layers go back
// first, then the second concat gives a block to x and a, which the first one adds to.
TEST(Gradients, AddsWhatConcatsContributeInPlace) {
  nets::Builder builder{"dense", {3, 8, 8}};
  const nets::NodeId x = builder.convolution("conv", builder.input(), {.channels = 4});
  const nets::NodeId a = builder.convolution("a", x, {.channels = 2});
  const nets::NodeId b = builder.convolution("b", builder.concat("xa", {x, a}), {.channels = 2});
  const nets::NodeId all = builder.concat("xab", {x, a, b});
  const nets::Network net = builder.build(builder.linear("fc", all, {.features = 5}));
  const Step step = make_training_step(net, MachineSizeModel{}, {.batch = 2});
  const auto names = [&](const std::vector<DataId>& ids) { return test::block_names(step, ids); };
  using Names = std::vector<std::string>;
  const Task& outer = *find_task(step, "xab.backward");
  EXPECT_EQ(names(outer.reads), (Names{"fc.dx"}));
  EXPECT_EQ(names(outer.writes), (Names{"xab.dx1", "xab.dx2", "xab.dx3"}));
  const Task& inner = *find_task(step, "xa.backward");
  EXPECT_EQ(names(inner.reads), (Names{"b.dx", "xab.dx1", "xab.dx2"}));
  EXPECT_EQ(names(inner.writes), (Names{"xab.dx1", "xab.dx2"}));
  EXPECT_EQ(find_task(step, "a.gradient"), nullptr);  // nothing is left to add
}

// Each half of a GPT block begins with a norm, and a residual connection goes around it.
TEST(Gradients, AddsThoseOfNormsInPlaceToThoseOfResidualConnections) {
  const Step step =
      make_training_step(nets::build_network("gpt:2,2,16,8"), MachineSizeModel{}, {.batch = 2});
  int additions = 0;
  int accumulating = 0;
  for (const Launch& launch : step.launches) {
    additions += std::holds_alternative<AddGradients>(launch.operation) ? 1 : 0;
    const auto* const norm = std::get_if<RowNormBackward>(&launch.operation);
    accumulating += norm != nullptr && norm->accumulates ? 1 : 0;
  }
  EXPECT_EQ(additions, 0);
  EXPECT_EQ(accumulating, 4);
}

// sum passes one block on to both of its sides, a and b. The concat must not add to it for a, since
// b has not read it yet.
TEST(Gradients, AddsInPlaceOnlyToWhatNobodyElseReads) {
  nets::Builder builder{"shared", {3, 8, 8}};
  const nets::NodeId x = builder.convolution("conv", builder.input(), {.channels = 4});
  const nets::NodeId b = builder.convolution("b", x, {.channels = 4});
  const nets::NodeId a = builder.convolution("a", x, {.channels = 4});
  const nets::NodeId joined = builder.concat("joined", {a, x});
  const nets::NodeId small = builder.convolution("small", joined, {.channels = 4});
  const nets::NodeId sum = builder.sum("sum", builder.sum("sum1", a, b), small);
  const nets::Network net = builder.build(builder.linear("fc", sum, {.features = 5}));
  const Step step = make_training_step(net, MachineSizeModel{}, {.batch = 2});
  const Task& backward = *find_task(step, "joined.backward");
  EXPECT_EQ(backward.reads.size(), 1U);
  for (const DataId id : backward.writes) EXPECT_NE(step.graph[id].name, "fc.dx");
  EXPECT_NE(find_task(step, "a.gradient"), nullptr);
}

// Joined with itself, a value gets two gradients, which must not lie in one block.
TEST(Gradients, KeepsTheTwoGradientsOfAValueJoinedWithItselfApart) {
  nets::Builder builder{"twice", {3, 8, 8}};
  const nets::NodeId x = builder.convolution("conv", builder.input(), {.channels = 4});
  const nets::NodeId side = builder.linear("side", x, {.features = 5});
  const nets::NodeId twice = builder.concat("twice", {x, builder.input(), x});
  const nets::Network net =
      builder.build(builder.sum("sum", builder.linear("fc", twice, {.features = 5}), side));
  const Step step = make_training_step(net, MachineSizeModel{}, {.batch = 2});
  const Task& backward = *find_task(step, "twice.backward");
  ASSERT_EQ(backward.writes.size(), 2U);  // the image needs none
  EXPECT_NE(backward.writes[0], backward.writes[1]);
  EXPECT_NE(find_task(step, "conv.gradient"), nullptr);
}

}  // namespace
}  // namespace spillway
