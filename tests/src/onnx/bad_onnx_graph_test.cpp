// Graphs that are no networks of ours.

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "tests/src/onnx/small_graph.h"

namespace spillway::test {
namespace {

using Integers = std::vector<std::int64_t>;

TEST(BadOnnxGraph, NamesTheOperatorThatIsNoLayer) {
  SmallGraph graph;
  graph.node("Clip", "relu6", {"image"}).node("Flatten", "flat", {"relu6"}).head("flat", 32);
  const std::string sentence = refusal_of(graph);
  EXPECT_TRUE(sentence.starts_with("my.onnx: operator Clip of node 'relu6' is none that layers do"))
      << sentence;
}

TEST(BadOnnxGraph, NamesTheAttributeThatNoLayerHas) {
  const auto pool = [](OnnxAttributes attributes) {
    attributes["kernel_shape"] = Integers{2, 2};
    SmallGraph graph;
    graph.node("MaxPool", "p", {"image"}, std::move(attributes));
    return refusal_of(graph);
  };
  const std::string beginning =
      "my.onnx: operator MaxPool of node 'p' has a value of its attribute ";
  const std::string end = " that no layer has";
  EXPECT_EQ(pool({{"pads", Integers{0, 0, 1}}}), beginning + "pads" + end);
  EXPECT_EQ(pool({{"strides", Integers{-1, 1}}}), beginning + "strides" + end);
  EXPECT_EQ(pool({{"dilations", Integers{2, 2}}}), beginning + "dilations" + end);
  EXPECT_EQ(pool({{"auto_pad", std::string{"SAME"}}}), beginning + "auto_pad" + end);
}

TEST(BadOnnxGraph, RefusesWeightsThatDoNotFit) {
  const auto convolution = [](std::vector<std::size_t> shape) {
    SmallGraph graph;
    graph.array("w", std::move(shape)).node("Conv", "c", {"image", "w"});
    return refusal_of(graph);
  };
  EXPECT_EQ(convolution({3, 1, 1, 1}),
            "my.onnx: operator Conv of node 'c' has an array 'w' of (3, 1, 1, 1), but needs "
            "(3, 2, 1, 1)");
  EXPECT_EQ(
      convolution({3, 2, 3}),
      "my.onnx: operator Conv of node 'c' does not convolve images: its weights are (3, 2, 3)");
}

TEST(BadOnnxGraph, RefusesNumbersThatAreNotFinite) {
  SmallGraph graph;
  graph.input({std::nullopt, 4}).head("image", 4);
  graph.model().tensors.front().floats.front() = std::numeric_limits<float>::infinity();
  EXPECT_EQ(refusal_of(graph),
            "my.onnx: operator Gemm of node 'fc' has an array 'fc.weight' that holds a number that "
            "is not finite");
}

TEST(BadOnnxGraph, RefusesImagesOfNoSize) {
  SmallGraph graph;
  graph.input({std::nullopt, 3, std::nullopt, std::nullopt}).head("image", 4);
  EXPECT_EQ(refusal_of(graph),
            "my.onnx: the network's input 'image' has no fixed size; export it with a symbolic "
            "batch alone");
}

TEST(BadOnnxGraph, RefusesGraphsThatAreNone) {
  SmallGraph unknown;
  unknown.head("nowhere", 4);
  EXPECT_EQ(refusal_of(unknown),
            "my.onnx: operator Gemm of node 'fc' reads 'nowhere', which no node before it makes");
  SmallGraph twice;
  twice.node("Relu", "a", {"image"}).node("Relu", "a", {"image"});
  EXPECT_EQ(refusal_of(twice),
            "my.onnx: operator Relu of node 'a' makes 'a', which is there before it");
  SmallGraph empty;
  empty.model().outputs = {{.name = "image", .shape = {}}};
  EXPECT_EQ(refusal_of(empty), "my.onnx: no node makes the network's output 'image'");
}

}  // namespace
}  // namespace spillway::test
