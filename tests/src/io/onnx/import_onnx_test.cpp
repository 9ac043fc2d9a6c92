// Graphs as other programs write them.
#include "src/io/onnx/import_onnx.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "nets/text/network_file.h"
#include "tests/src/io/onnx/small_graph.h"

namespace spillway::test {
namespace {

using Sizes = std::vector<std::int64_t>;
constexpr std::int64_t kOne = 1;

// Returns the layers, one per line, without their shapes.
std::vector<std::string> layers_of(SmallGraph& graph) {
  std::vector<std::string> kinds;
  const nets::Network network = nets::build_network(imported(graph).entry);
  for (const nets::Node& node : network.nodes) {
    if (!node.inputs.empty()) kinds.push_back(node.name + ": " + nets::to_string(node.layer));
  }
  return kinds;
}

using Lines = std::vector<std::string>;

Lines with_end(Lines lines) {
  SmallGraph end;
  end.input({std::nullopt, 4}).head("image", 4);
  for (const std::string& line : layers_of(end)) lines.push_back(line);
  return lines;
}

TEST(ImportOnnx, ReadsAPoolOfMeansAsPyTorchWritesIt) {
  SmallGraph graph;
  graph.integers("axes", {-1, -2})
      .integers("shape", {-1, 2})
      .node("ReduceMean", "mean", {"image", "axes"}, {{"keepdims", kOne}})
      .node("Reshape", "view", {"mean", "shape"})
      .head("view", 2);
  EXPECT_EQ(layers_of(graph), with_end({"mean: global average pool"}));
}

TEST(ImportOnnx, TurnsTheMatrixOfAProductAndTakesTheBiasesBehindIt) {
  SmallGraph graph;
  graph.input({std::nullopt, 2})
      .array("w", {2, 3})
      .array("b", {3})
      .node("MatMul", "product", {"image", "w"})
      .node("Add", "sum", {"b", "product"});
  const ImportedNetwork network = imported(graph);
  const std::vector<float> w = drawn_array("w", 6);
  EXPECT_EQ(network.arrays.at("product.weight"), (std::vector{w[0], w[3], w[1], w[4], w[2], w[5]}));
  EXPECT_EQ(network.arrays.at("product.bias"), drawn_array("b", 3));
}

TEST(ImportOnnx, LeavesTheSoftmaxToTheLoss) {
  SmallGraph graph;
  graph.input({std::nullopt, 4}).head("image", 4).node("Softmax", "probabilities", {"fc"});
  EXPECT_EQ(layers_of(graph), with_end({}));
}

// The error for a graph that ends with a softmax over `axis`.
std::string refusal_of_softmax(SmallGraph graph, const std::string& x, OnnxAttributes axis,
                               std::int64_t operators = kOnnxOperators) {
  graph.node("Softmax", "s", {x}, std::move(axis));
  graph.model().operators = operators;
  return refusal_of(std::move(graph));
}

OnnxAttributes axis(std::int64_t number) { return {{"axis", number}}; }

constexpr const char* kNotOverClasses =
    "my.onnx: operator Softmax of node 's' is not over the classes";

TEST(ImportOnnx, TakesTheSoftmaxOfAVectorOverItsClassesAlone) {
  SmallGraph graph;
  graph.input({std::nullopt, 4}).head("image", 4);
  for (const OnnxAttributes& each : {OnnxAttributes{}, axis(1), axis(-1)}) {
    EXPECT_EQ(refusal_of_softmax(graph, "fc", each), "accepted");
    EXPECT_EQ(refusal_of_softmax(graph, "fc", each, 12), "accepted");
  }
  EXPECT_EQ(refusal_of_softmax(graph, "fc", axis(0)), kNotOverClasses);
}

TEST(ImportOnnx, TakesTheSoftmaxOfAnImageOverItsChannelsAlone) {
  SmallGraph graph;
  graph.array("w", {3, 2, 1, 1}).node("Conv", "c", {"image", "w"});
  EXPECT_EQ(refusal_of_softmax(graph, "c", axis(1)), "accepted");
  EXPECT_EQ(refusal_of_softmax(graph, "c", axis(-3)), "accepted");
  for (const OnnxAttributes& other : {OnnxAttributes{}, axis(-1), axis(0), axis(2), axis(3)}) {
    EXPECT_EQ(refusal_of_softmax(graph, "c", other), kNotOverClasses);
  }
  // Before version 13, axis 1 also covered height and width, and was the default.
  EXPECT_EQ(refusal_of_softmax(graph, "c", axis(1), 12), kNotOverClasses);
  EXPECT_EQ(refusal_of_softmax(graph, "c", {}, 12), kNotOverClasses);
  graph.input({std::nullopt, 2, 1, 1});
  EXPECT_EQ(refusal_of_softmax(graph, "c", {}, 12), "accepted");
  EXPECT_EQ(refusal_of_softmax(graph, "c", {}, 13), kNotOverClasses);
}

TEST(ImportOnnx, RefusesWeightsThatTwoLayersShare) {
  const auto twice = [](const std::string& second) {
    SmallGraph graph;
    graph.array("w", {2, 2, 1, 1})
        .array("v", {2, 2, 1, 1})
        .array("b", {2})
        .node("Identity", "again", {"w"})
        .node("Conv", "c", {"image", "w", "b"})
        .node("Conv", "d", {"c", second, "b"});
    return refusal_of(std::move(graph));
  };
  EXPECT_EQ(twice("v"), "accepted");
  for (const char* const same : {"w", "again"}) {
    EXPECT_EQ(twice(same),
              "my.onnx: operator Conv of node 'd' shares its weights with an earlier node, which "
              "layers do not");
  }
}

TEST(ImportOnnx, RefusesPoolsWithoutAWindow) {
  SmallGraph graph;
  graph.node("MaxPool", "p", {"image"}).node("Flatten", "f", {"p"}).head("f", 32);
  EXPECT_EQ(refusal_of(graph), "my.onnx: operator MaxPool of node 'p' has no kernel_shape");
}

TEST(ImportOnnx, SqueezesHeightAndWidthAlone) {
  const auto squeezed = [](const Sizes& axes) {
    SmallGraph graph;
    graph.input({std::nullopt, 2, 1, 1})
        .integers("axes", axes)
        .node("Squeeze", "q", {"image", "axes"})
        .head("q", 2);
    return refusal_of(std::move(graph));
  };
  EXPECT_EQ(squeezed({2, 3}), "accepted");
  EXPECT_EQ(squeezed({-1, -2}), "accepted");
  for (const Sizes& others : {Sizes{0, 2}, Sizes{2, -2}, Sizes{1, 3}, Sizes{3}, Sizes{}}) {
    EXPECT_EQ(squeezed(others),
              "my.onnx: operator Squeeze of node 'q' makes something else than one vector of each "
              "image");
  }
}

TEST(ImportOnnx, ReshapesToOneVectorOfEachImage) {
  const auto reshaped = [](const Sizes& shape, std::int64_t allowzero) {
    SmallGraph graph;
    graph.integers("shape", shape)
        .node("Reshape", "r", {"image", "shape"}, {{"allowzero", allowzero}})
        .head("r", 32);
    return refusal_of(std::move(graph));
  };
  EXPECT_EQ(reshaped({0, -1}, 0), "accepted");
  EXPECT_EQ(reshaped({-1, 32}, 0), "accepted");
  EXPECT_EQ(reshaped({-1, 32}, 1), "accepted");  // PyTorch's form
  const std::string other =
      "my.onnx: operator Reshape of node 'r' makes something else than one vector of each image";
  EXPECT_EQ(reshaped({-1, -1}, 0), other);
  EXPECT_EQ(reshaped({0, 32}, 1), other);
}

TEST(ImportOnnx, FollowsConstantsThatAreHandedOn) {
  SmallGraph graph;
  graph.array("shared", {2})
      .node("Identity", "again", {"shared"})
      .node("Constant", "weight", {},
            {{"value", OnnxTensor{.name = "", .shape = {2, 2, 1, 1}, .floats = {1, 2, 3, 4}}}})
      .node("Conv", "/conv/Conv", {"image", "weight", "again"})
      .node("Flatten", "flat", {"/conv/Conv"})
      .head("flat", 32);
  const ImportedNetwork network = imported(graph);
  EXPECT_EQ(network.arrays.at("conv.weight"), (std::vector<float>{1, 2, 3, 4}));
  EXPECT_EQ(network.arrays.at("conv.bias"), drawn_array("shared", 2));
}

TEST(ImportOnnx, FlattensForLayersThatTellChannelsApart) {
  SmallGraph graph;
  graph.node("Flatten", "flat", {"image"})
      .node("Relu", "relu", {"flat"})
      .node("Concat", "twice", {"relu", "relu"}, {{"axis", kOne}})
      .head("twice", 64);
  EXPECT_EQ(nets::build_network(imported(graph).entry).nodes.size(), 6U);
}

TEST(ImportOnnx, PassesOverPoolsThatChangeNothingAndNodesThatNobodyReads) {
  SmallGraph graph;
  graph.node("Unknown", "unread", {"image"})
      .node("AveragePool", "same", {"image"}, {{"kernel_shape", Sizes{1, 1}}})
      .node("Flatten", "flat", {"same"})
      .head("flat", 32);
  EXPECT_EQ(layers_of(graph), with_end({}));
}

TEST(ImportOnnx, PassesOverAConcatOfOneAndRefusesASumOfThree) {
  SmallGraph one;
  one.node("Concat", "one", {"image"}, {{"axis", kOne}})
      .node("Flatten", "flat", {"one"})
      .head("flat", 32);
  EXPECT_EQ(layers_of(one), with_end({}));
  SmallGraph three;
  three.node("Add", "sum", {"image", "image", "image"});
  EXPECT_EQ(refusal_of(three),
            "my.onnx: operator Add of node 'sum' reads 3 values, which no layer does");
}

TEST(ImportOnnx, RefusesASumOfAVectorAndAnImage) {
  SmallGraph graph;
  graph.node("Flatten", "flat", {"image"}).node("Add", "sum", {"flat", "image"});
  EXPECT_EQ(refusal_of(graph),
            "my.onnx: operator Add of node 'sum' reads vectors and images together");
}

TEST(ImportOnnx, GivesLayersNamesThatCheckpointsCanHave) {
  SmallGraph graph;
  graph.input({std::nullopt, 4})
      .node("Relu", "a b", {"image"})
      .node("Relu", "a?b", {"a b"})
      .node("Relu", "labels", {"a?b"})
      .head("labels", 4);
  std::vector<std::string> names;
  for (const nets::Node& node : nets::build_network(imported(graph).entry).nodes) {
    names.push_back(node.name);
  }
  EXPECT_EQ(names, (Lines{"image", "a_b", "a_b_2", "labels_2", "fc", "loss"}));
}

TEST(ImportOnnx, GivesAsManyLayersAsThereAreNamesOfTheirOwn) {
  constexpr int kMany = 100;
  SmallGraph graph;
  graph.input({std::nullopt, 4});
  for (int i = 1; i <= kMany; ++i) {
    graph.node("Relu", "y" + std::to_string(i), {i == 1 ? "image" : "y" + std::to_string(i - 1)});
    graph.model().nodes.back().name = "same";
  }
  graph.head("y" + std::to_string(kMany), 4);
  const nets::Network network = nets::build_network(imported(graph).entry);
  EXPECT_EQ(network.nodes.at(1).name, "same");
  EXPECT_EQ(network.nodes.at(kMany).name, "same_" + std::to_string(kMany));
}

}  // namespace
}  // namespace spillway::test
