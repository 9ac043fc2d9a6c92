// Graphs as other programs write them.
#include "src/io/onnx/import_onnx.h"

#include <gtest/gtest.h>

#include <cstdint>
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

// Padding as other programs write it: on one side only, or left to ONNX (auto_pad).

constexpr const char* kUpper = "SAME_UPPER";
constexpr const char* kLower = "SAME_LOWER";
constexpr const char* kValid = "VALID";

// A windowed operator, followed by a mean.
struct Windowed {
  std::string type = "Conv";
  std::size_t height = 8;
  std::size_t width = 8;
  std::size_t kernel = 3;
  OnnxAttributes attributes = {};
};

OnnxAttributes same(const std::string& how, const Sizes& strides = {1, 1}) {
  return {{"auto_pad", how}, {"strides", strides}};
}
OnnxAttributes pads(const Sizes& sides, const Sizes& strides = {1, 1}) {
  return {{"pads", sides}, {"strides", strides}};
}
OnnxAttributes with(OnnxAttributes attributes, const std::string& word, OnnxAttribute value) {
  attributes[word] = std::move(value);
  return attributes;
}

// Returns a graph of the node. The kernel comes from the weights or from kernel_shape, with equal
// windows.
SmallGraph graph_of(const Windowed& node) {
  SmallGraph graph;
  graph.input({std::nullopt, 2, node.height, node.width});
  OnnxAttributes attributes = node.attributes;
  std::vector<std::string> inputs{"image"};
  if (node.type.starts_with("Conv")) {
    graph.array("w", {2, 2, node.kernel, node.kernel});
    inputs.emplace_back("w");
  } else {
    const auto side = static_cast<std::int64_t>(node.kernel);
    attributes["kernel_shape"] = Sizes{side, side};
  }
  graph.node(node.type, "x", std::move(inputs), std::move(attributes))
      .node("GlobalAveragePool", "mean", {"x"})
      .node("Flatten", "flat", {"mean"});
  graph.head("flat", 2);
  return graph;
}

// Returns "convolution 3x3, ..." and its output, "2x8x8".
std::string read(const Windowed& node) {
  SmallGraph graph = graph_of(node);
  const nets::Network network = nets::build_network(imported(graph).entry);
  const nets::Node& made = network.nodes.at(1);
  return nets::to_string(made.layer) + " makes " + nets::to_string(made.output);
}

// Returns the error after the node's name, or "accepted".
std::string refused(const Windowed& node) {
  const std::string sentence = refusal_of(graph_of(node));
  const std::string beginning = "my.onnx: operator " + node.type + " of node 'x' ";
  return sentence.starts_with(beginning) ? sentence.substr(beginning.size()) : sentence;
}

// Expects the same layer as with these even pads.
void expect_as_padded(const Windowed& node, const Sizes& even, OnnxAttributes more = {}) {
  Windowed explicit_one = node;
  explicit_one.attributes.erase("auto_pad");
  explicit_one.attributes["pads"] = even;
  for (auto& [word, value] : more) explicit_one.attributes[word] = value;
  EXPECT_EQ(read(node), read(explicit_one));
}

// ceil(8 / 1) = 8 windows of 3 cover 10 numbers, two more than the image has.
TEST(OnnxPadding, IsEvenOnBothSidesWhereWindowsGoOneByOne) {
  for (const char* const how : {kUpper, kLower}) {
    expect_as_padded({.attributes = same(how)}, {1, 1, 1, 1});
    expect_as_padded({.kernel = 5, .attributes = same(how)}, {2, 2, 2, 2});
    expect_as_padded({.type = "MaxPool", .attributes = same(how)}, {1, 1, 1, 1});
    expect_as_padded({.type = "AveragePool", .attributes = same(how)}, {1, 1, 1, 1});
    expect_as_padded({.attributes = with(same(how), "dilations", Sizes{2, 2})}, {2, 2, 2, 2});
  }
  EXPECT_NE(read({.attributes = same(kUpper)}).find("makes 2x8x8"), std::string::npos);
}

// ceil(9 / 2) = 5 windows of 3 cover 11 for 9 numbers: one more on each side. For 8 numbers, 4
// windows cover 9: one more on one side.
TEST(OnnxPadding, IsThatOfTheImageWhereWindowsGoFurther) {
  expect_as_padded({.height = 9, .width = 9, .attributes = same(kUpper, {2, 2})}, {1, 1, 1, 1});
  expect_as_padded({.height = 9, .width = 7, .attributes = same(kLower, {2, 2})}, {1, 1, 1, 1});
  expect_as_padded({.height = 9, .width = 8, .attributes = same(kLower, {2, 2})}, {1, 1, 1, 1});
  expect_as_padded({.height = 9, .width = 8, .attributes = same(kLower, {2, 1})}, {1, 1, 1, 1});
  EXPECT_EQ(refused({.height = 9, .width = 8, .attributes = same(kUpper, {2, 2})}),
            "pads the width by 0 before and 1 behind, but layers pad both sides alike; give both "
            "the same padding where the network is made, and export it again");
}

TEST(OnnxPadding, IsNoneWhereItSaysSo) {
  for (const char* const type : {"Conv", "MaxPool", "AveragePool", "ConvTranspose"}) {
    expect_as_padded({.type = type, .attributes = same(kValid, {2, 2})}, {0, 0, 0, 0});
    expect_as_padded({.type = type, .attributes = same("NOTSET", {2, 2})}, {0, 0, 0, 0});
  }
}

// The layer also pads after the image, but no window gets there.
TEST(OnnxPadding, MayBeOfTheFirstSideAloneWhereNoWindowReachesTheOther) {
  expect_as_padded({.attributes = pads({1, 1, 0, 0}, {2, 2})}, {1, 1, 1, 1});
  expect_as_padded(
      {.type = "AveragePool",
       .attributes = with(pads({1, 1, 0, 0}, {2, 2}), "count_include_pad", std::int64_t{1})},
      {1, 1, 1, 1});
  EXPECT_EQ(refused({.attributes = pads({1, 1, 0, 0})}),
            "pads the height by 1 before and 0 behind, but layers pad both sides alike; give both "
            "the same padding where the network is made, and export it again");
  EXPECT_EQ(refused({.height = 9, .attributes = pads({1, 1, 0, 0}, {2, 2})})
                .find("pads the height by 1 before and 0 behind"),
            0U);
}

// A last window that is cut off at the image's end equals rounding up.
TEST(OnnxPadding, IsRoundingUpWhereAPoolPadsBehindAlone) {
  const OnnxAttributes up = {{"ceil_mode", std::int64_t{1}}};
  for (const char* const type : {"MaxPool", "AveragePool"}) {
    expect_as_padded({.type = type, .attributes = same(kUpper, {2, 2})}, {0, 0, 0, 0}, up);
    expect_as_padded({.type = type, .attributes = pads({0, 0, 1, 1}, {2, 2})}, {0, 0, 0, 0}, up);
    EXPECT_EQ(refused({.type = type, .attributes = pads({0, 0, 1, 1})})
                  .find("pads the height by 0 before and 1 behind"),
              0U);
  }
  // The last window is divided by 9, not by the count of its numbers.
  EXPECT_NE(
      refused({.type = "AveragePool",
               .attributes = with(same(kUpper, {2, 2}), "count_include_pad", std::int64_t{1})})
          .find("counts the padding of a last window"),
      std::string::npos);
}

// Some programs make 4 windows of 2 in a row of 7 numbers, others 3.
TEST(OnnxPadding, IsRefusedBesideARoundingThatProgramsReadDifferently) {
  const OnnxAttributes up = with(same(kValid, {2, 2}), "ceil_mode", std::int64_t{1});
  expect_as_padded({.type = "MaxPool", .kernel = 2, .attributes = up}, {0, 0, 0, 0},
                   {{"ceil_mode", std::int64_t{0}}});
  EXPECT_EQ(refused({.type = "MaxPool", .width = 7, .kernel = 2, .attributes = up}),
            "rounds up beside a padding that makes programs differ about its last window; export "
            "it without ceil_mode");
}

// A transposed convolution outputs 8 x 2 numbers: of 7 x 2 + 4 it cuts one at each end.
TEST(OnnxPadding, CutsOffWhatATransposedConvolutionMakes) {
  const auto transposed = [](std::size_t kernel, OnnxAttributes attributes) {
    return Windowed{.type = "ConvTranspose", .kernel = kernel, .attributes = std::move(attributes)};
  };
  expect_as_padded(transposed(4, same(kUpper, {2, 2})), {1, 1, 1, 1});
  EXPECT_NE(read(transposed(4, same(kUpper, {2, 2}))).find("makes 2x16x16"), std::string::npos);
  expect_as_padded(transposed(3, pads({1, 1, 0, 0}, {2, 2})), {1, 1, 1, 1},
                   {{"output_padding", Sizes{1, 1}}});
  for (const char* const how : {kUpper, kLower}) {  // versions of ONNX differ
    EXPECT_EQ(refused(transposed(3, same(how, {2, 2}))).find("pads the height by "), 0U);
  }
  EXPECT_EQ(refused(transposed(3, pads({0, 0, 1, 1}, {2, 2})))
                .find("pads the height by 0 before and 1 behind"),
            0U);
  EXPECT_EQ(refused(transposed(1, same(kUpper, {2, 2}))),
            "has a value of its attribute auto_pad that no layer has");
}

TEST(OnnxPadding, IsSaidOnceAndAsOnnxSaysIt) {
  expect_as_padded({.attributes = with(same(kUpper), "pads", Sizes{1, 1, 1, 1})}, {1, 1, 1, 1});
  EXPECT_EQ(refused({.attributes = with(same(kUpper), "pads", Sizes{0, 0, 0, 0})}),
            "says its padding twice, as auto_pad and as pads; export it with pads alone");
  const auto wrong = [](const std::string& word, OnnxAttribute value) {
    return refused({.attributes = with(same(kUpper), word, std::move(value))}) ==
           "has a value of its attribute " + word + " that no layer has";
  };
  EXPECT_TRUE(wrong("auto_pad", std::string{"SAME"}));
  EXPECT_TRUE(wrong("auto_pad", std::int64_t{1}));
  EXPECT_TRUE(wrong("strides", Sizes{2}));
  EXPECT_TRUE(wrong("strides", Sizes{0, 1}));
  EXPECT_TRUE(wrong("pads", Sizes{0, -1, 0, 0}));
  EXPECT_TRUE(wrong("dilations", Sizes{1, 1, 1}));
  EXPECT_TRUE(wrong("kernel_shape", Sizes{std::int64_t{1} << 62U, 1}));
}

}  // namespace
}  // namespace spillway::test
