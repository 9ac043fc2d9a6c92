// Padding as other programs write it: on one side only, or left to ONNX (auto_pad).
#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "nets/text/network_file.h"
#include "src/io/onnx/import_onnx.h"
#include "tests/src/io/onnx/small_graph.h"

namespace spillway::test {
namespace {

using Sizes = std::vector<std::int64_t>;
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
