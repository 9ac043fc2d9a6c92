// The step that ends with logits.
// Steps of which some layers are frozen.
// Which kernels of attention a step may use.
#include "src/program/step.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <map>
#include <string>
#include <variant>
#include <vector>

#include "nets/builder.h"
#include "nets/families/network_catalogue.h"
#include "prefetch/block_sizes.h"
#include "prefetch/plan.h"
#include "prefetch/verify/dataflow.h"
#include "src/host/host_backend.h"
#include "src/program/machine_size_model.h"
#include "src/program/passes.h"
#include "tests/refusal.h"
#include "tests/src/small_training.h"
#include "tests/src/step_tasks.h"

namespace spillway {
namespace {

using prefetch::Task;
using test::find_block;
using test::find_task;
using test::task_names;

// Two losses: one block has their sum; evaluation has neither the head nor its state.
TEST(TrainingStep, AddsTheLossesOfHeadsThatEvaluationLeavesOut) {
  nets::Builder builder{"heads", {3, 8, 8}};
  const nets::NodeId x = builder.convolution("conv", builder.input(), {.channels = 4});
  builder.auxiliary_loss("aux.loss", builder.linear("aux", x, {.features = 5}), 0.25F);
  const nets::Network net = builder.build(builder.linear("fc", x, {.features = 5}));
  const Step training = make_training_step(net, MachineSizeModel{}, {.batch = 2});
  const Task& aux = *find_task(training, "aux.loss.forward");
  const Task& main = *find_task(training, "loss.forward");
  EXPECT_EQ(std::ranges::count(aux.reads, training.results.front()), 0);
  EXPECT_EQ(std::ranges::count(main.reads, training.results.front()), 1);
  EXPECT_EQ(std::ranges::count(main.writes, training.results.front()), 1);
  const auto violation =
      prefetch::check_dataflow(training.graph, prefetch::runs_in_order(training.graph));
  EXPECT_FALSE(violation) << violation->reason;
  EXPECT_NE(find_task(training, "conv.gradient"), nullptr);
  EXPECT_NE(find_task(training, "aux.update"), nullptr);

  const Step evaluation = make_evaluation_step(net, MachineSizeModel{}, {.batch = 2});
  EXPECT_EQ(task_names(evaluation),
            (std::vector<std::string>{"load", "conv.forward", "fc.forward", "loss.forward"}));
}

// Counts how often it is asked of operations with weights.
class CountingModel final : public MachineSizeModel {
 public:
  [[nodiscard]] std::vector<AlgorithmInfo> algorithms(const Operation& operation) const override {
    const OperationKind kind = row_of(operation).kind;
    if (kind == OperationKind::kConvolution || kind == OperationKind::kLinear) ++count_;
    return MachineSizeModel::algorithms(operation);
  }
  [[nodiscard]] std::size_t count() const { return count_; }

 private:
  mutable std::size_t count_ = 0;
};

// The first layer, all others, and the last; a library takes a thousand times as long as the rest.
TEST(TrainingStep, AsksForTheAlgorithmsOfRepeatedLayersOnce) {
  for (const std::size_t layers : {4U, 400U}) {
    nets::Builder builder{"deep", {3, 8, 8}};
    nets::NodeId x = builder.input();
    for (std::size_t i = 0; i < layers; ++i) {
      x = builder.convolution("conv" + std::to_string(i), x, {.channels = 4});
    }
    const nets::Network net = builder.build(builder.linear("fc", x, {.features = 5}));
    const CountingModel model;
    const Step step = make_training_step(net, model, {.batch = 2});
    EXPECT_EQ(model.count(), 3U);
    EXPECT_EQ(find_task(step, "conv1.forward")->algorithms.size(),
              find_task(step, "conv3.forward")->algorithms.size());
  }
}

// image -> conv -> norm -> relu -> linear: norm takes the ReLU in.
nets::Network network_of_four() {
  nets::Builder builder{"small", {3, 8, 8}};
  nets::NodeId x = builder.convolution("conv", builder.input(), {.channels = 4});
  x = builder.batch_norm("norm", x);
  x = builder.relu("relu", x);
  return builder.build(builder.linear("fc", x, {.features = 5}));
}

// 12 bytes are said of each sample, and with them 4 of each of 5 logits; what is smaller than a
// quarter of the largest page, 512 KiB, never moves.
TEST(EvaluationStep, LoadsNoMoreSamplesThanItMaySayOf) {
  for (const auto& [gives_logits, samples] : {std::pair{false, 43'689}, std::pair{true, 16'383}}) {
    const Step step = make_evaluation_step(network_of_four(), MachineSizeModel{},
                                           {.batch = 1U << 20U, .gives_logits = gives_logits});
    EXPECT_EQ(std::get<LoadBatch>(step.launches.front().operation).x.batch, samples);
    const prefetch::BlockSizes block_sizes{step.graph, prefetch::kLargestPage};
    EXPECT_FALSE(block_sizes.is_movable(step.results.front()));
  }
}

TEST(EvaluationStep, RefusesLogitsOfTooManyClasses) {
  nets::Builder builder{"wide", {3, 1, 1}};
  const nets::NodeId fc = builder.linear("fc", builder.input(), {.features = 1U << 20U});
  const nets::Network net = builder.build(fc);
  const std::string sentence = test::refusal(
      [&] { return make_evaluation_step(net, MachineSizeModel{}, {.gives_logits = true}); });
  EXPECT_NE(sentence.find("1048576 classes are too many to be kept: at most 131066"),
            std::string::npos)
      << sentence;
}

TEST(TrainingStep, LoadsFirstUpdatesLastAndFusesReluIn) {
  const Step step = make_training_step(network_of_four(), MachineSizeModel{}, {.batch = 2});
  EXPECT_EQ(task_names(step).front(), "load");
  EXPECT_EQ(task_names(step).back(), "conv.update");
  EXPECT_EQ(find_task(step, "relu.forward"), nullptr);  // fused into norm
  const Task& norm = *find_task(step, "norm.forward");
  ASSERT_EQ(norm.updates_once.size(), 1U);
  EXPECT_EQ(step.graph[norm.updates_once[0]].name, "norm.running");
}

TEST(TrainingStep, HasNoGradientForTheImage) {
  const Step step = make_training_step(network_of_four(), MachineSizeModel{}, {.batch = 2});
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

constexpr std::size_t kTexts = 3;
constexpr std::size_t kVocabulary = 19;

class SamplingStep : public testing::TestWithParam<const char*> {
 protected:
  MachineSizeModel size_model;
  nets::Network net =
      nets::build_network(GetParam(), {.image = nets::tokens(8), .classes = kVocabulary});
  Step evaluation = make_evaluation_step(net, size_model, {.batch = kTexts});
  Step sampling = make_sampling_step(net, size_model, {.batch = kTexts});
};

TEST_P(SamplingStep, IsAnEvaluationButForItsEnd) {
  ASSERT_EQ(sampling.graph.tasks.size(), evaluation.graph.tasks.size());
  for (std::size_t t = 0; t + 1 < sampling.graph.tasks.size(); ++t) {
    EXPECT_EQ(sampling.graph.tasks[t].name, evaluation.graph.tasks[t].name);
  }
  ASSERT_EQ(sampling.state.size(), evaluation.state.size());
  for (std::size_t i = 0; i < sampling.state.size(); ++i) {
    EXPECT_EQ(sampling.state[i].name, evaluation.state[i].name);
    EXPECT_EQ(sampling.state[i].spec, evaluation.state[i].spec);
  }
}

TEST_P(SamplingStep, EndsWithTheLogitsOfEachText) {
  EXPECT_TRUE(std::holds_alternative<VocabularyLogits>(sampling.launches.back().operation));
  EXPECT_EQ(sampling.launches.back().operands.back(), sampling.results.front());
  EXPECT_EQ(sampling.graph[sampling.results.front()].size, float_bytes(kTexts * kVocabulary));
}

TEST_P(SamplingStep, ReadsNothingThatWasNotWrittenBefore) {
  const auto violation =
      prefetch::check_dataflow(sampling.graph, prefetch::runs_in_order(sampling.graph));
  EXPECT_FALSE(violation) << violation->reason;
}

INSTANTIATE_TEST_SUITE_P(OfNetworks, SamplingStep,
                         testing::Values("gpt:1,2,16,32", "llama:1,2,1,16,24,32"));

// conv, norm with ReLU, fc.
Step step_with(const std::vector<std::string>& frozen) {
  const host::HostBackend backend{1};
  return make_training_step(test::small_network(), backend, {.batch = 2, .frozen = frozen});
}

TEST(FrozenLayers, HaveNoGradientNoUpdateAndNoOptimizerState) {
  const Step step = step_with({"conv"});
  for (const char* task : {"conv.backward_weights", "conv.update"})
    EXPECT_FALSE(find_task(step, task));
  for (const char* block : {"conv.dw", "conv.momentum"}) EXPECT_FALSE(find_block(step, block));
  for (const char* task : {"conv.forward", "norm.backward", "norm.update", "fc.update"}) {
    EXPECT_TRUE(find_task(step, task)) << task;
  }
  EXPECT_EQ(step.launches.size(), step.graph.tasks.size());
}

TEST(FrozenLayers, AtTheBeginningNeedNoGradientOfWhatTheyMake) {
  const Step step = step_with({"conv", "norm"});
  for (const char* task : {"norm.backward", "norm.update", "fc.backward_data"}) {
    EXPECT_FALSE(find_task(step, task)) << task;
  }
  EXPECT_TRUE(find_task(step, "fc.backward_weights"));
  EXPECT_FALSE(find_block(step, "fc.dx"));
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
  EXPECT_EQ(step.graph[step.results.front()].name, "result");
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

// As a GPU's with two of cuDNN's kernels.
class TwoAttentions final : public MachineSizeModel {
 public:
  [[nodiscard]] std::vector<AlgorithmInfo> algorithms(const Operation& operation) const override {
    std::vector<AlgorithmInfo> all = MachineSizeModel::algorithms(operation);
    if (std::holds_alternative<AttentionForward>(operation) ||
        std::holds_alternative<AttentionBackward>(operation)) {
      all.push_back({.name = "engine2", .workspace = {}});
      all.push_back({.name = "engine1", .workspace = {}});
    }
    return all;
  }
};

TEST(AttentionChoice, IsOfAllTheFirstOrTheFirstOfCudnns) {
  using Names = std::vector<std::string>;
  const nets::Network net = nets::build_network("gpt:1,2,16,8");
  const auto algorithms = [&](const SizeModel& sizes, const StepOptions& options) {
    const Step step = make_training_step(net, sizes, options);
    Names names;
    for (const char* const task : {"h.0.attn.forward", "h.0.attn.backward"}) {
      Names each;
      for (const auto& algorithm : test::find_task(step, task)->algorithms) {
        each.push_back(algorithm.name);
      }
      EXPECT_TRUE(names.empty() || names == each);
      names = each;
    }
    return names;
  };
  const TwoAttentions sizes;
  EXPECT_EQ(algorithms(sizes, {}), (Names{"default", "engine2", "engine1"}));
  EXPECT_EQ(algorithms(sizes, {.convolution = ConvolutionAlgorithm::kDirect}), Names{"default"});
  EXPECT_EQ(algorithms(sizes, {.attention = AttentionAlgorithm::kOwn}), Names{"default"});
  EXPECT_EQ(algorithms(sizes, {.convolution = ConvolutionAlgorithm::kDirect,
                               .attention = AttentionAlgorithm::kCudnn}),
            Names{"engine2"});
  EXPECT_EQ(test::refusal([&] {
              return algorithms(MachineSizeModel{}, {.attention = AttentionAlgorithm::kCudnn});
            }),
            "cuDNN has no attention for this: it takes an NVIDIA GPU, bf16, no dropout, and heads "
            "whose width is a multiple of 8; leave out --attention cudnn");
}

}  // namespace
}  // namespace spillway
