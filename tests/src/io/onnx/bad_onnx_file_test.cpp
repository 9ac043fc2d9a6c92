// Files that are not ONNX, and arrays in other files.
// Graphs that are not networks Spillway supports.
#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <limits>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "src/io/onnx/onnx_model.h"
#include "tests/refusal.h"
#include "tests/src/io/onnx/small_graph.h"
#include "tests/temporary_folder.h"

namespace spillway::test {
namespace {

// Returns a field of a protobuf message: bytes, or a small number.
std::string field(unsigned number, const std::string& bytes) {
  std::string text;
  text += static_cast<char>(number << 3U | 2U);
  text += static_cast<char>(bytes.size());  // below 128
  return text + bytes;
}
std::string field(unsigned number, char value) { return {static_cast<char>(number << 3U), value}; }

std::string entry(const std::string& key, const std::string& value) {
  return field(13, field(1, key) + field(2, value));
}

// Returns a file with one node; its operators have version 17 unless `versions` says otherwise.
std::string model_of(const std::string& tensors,
                     const std::string& versions = field(8, field(2, '\21'))) {
  const std::string node = field(1, "x") + field(2, "y") + field(4, "Relu");
  return field(7, field(1, node) + tensors) + versions;
}

// Returns an array of `count` floats.
std::string tensor(const std::string& name, char count, const std::string& content) {
  return field(5, field(1, count) + field(2, '\1') + field(8, name) + content);
}
std::string external(const std::string& name, char count, const std::string& place) {
  return tensor(name, count, place + field(14, '\1'));
}

// Returns a model with one array, four floats, in another file.
std::string model_with(const std::string& place) { return model_of(external("w", '\4', place)); }

class BadOnnxFile : public testing::Test {
 protected:
  void SetUp() override {
    if (!has_onnx_library()) GTEST_SKIP() << "built without ONNX's library";
    std::ofstream{folder_.file("four")} << std::string(16, '\0');
  }
  [[nodiscard]] std::string refusal_of(const std::string& bytes) const {
    std::ofstream{folder_.file("m.onnx"), std::ios::binary} << bytes;
    const std::string sentence = refusal([&] { return read_onnx(folder_.file("m.onnx")); });
    const std::string beginning = "cannot read " + folder_.file("m.onnx") + ": ";
    return sentence.starts_with(beginning) ? sentence.substr(beginning.size()) : sentence;
  }
  TemporaryFolder folder_;
};

TEST_F(BadOnnxFile, SaysWhatItIsNot) {
  EXPECT_EQ(refusal_of("no protobuf at all"), "it is no ONNX file, or cut off");
  EXPECT_EQ(refusal_of(""), "it is no ONNX model");
}

TEST_F(BadOnnxFile, ReadsArraysOfTheFileBesideIt) {
  EXPECT_EQ(refusal_of(model_with(entry("location", "four"))), "accepted");
  EXPECT_EQ(refusal_of(model_with(entry("location", "four") + entry("length", "16"))), "accepted");
}

TEST_F(BadOnnxFile, LooksNowhereElse) {
  for (const std::string place : {"../four", "/etc/passwd", "..", ".", "", "a/four"}) {
    EXPECT_EQ(refusal_of(model_with(entry("location", place))),
              "array 'w' is in '" + place + "', which is no file beside it");
  }
}

TEST_F(BadOnnxFile, HasNamesOfFilesThatAreNotCut) {
  EXPECT_EQ(refusal_of(model_with(entry("location", std::string{"four\0.more", 10}))),
            "array 'w' is in a file whose name has a zero byte, which no file has");
}

TEST_F(BadOnnxFile, ReadsNoFurtherThanTheFileGoes) {
  const auto with_place = [&](const std::string& key, const std::string& value) {
    return refusal_of(model_with(entry("location", "four") + entry(key, value)));
  };
  const std::string beyond = "array 'w' goes beyond the end of four";
  EXPECT_EQ(with_place("offset", "17"), beyond);
  EXPECT_EQ(with_place("length", "17"), beyond);
  EXPECT_EQ(with_place("length", "999999999999999999"), beyond);
  EXPECT_EQ(with_place("length", "-1"), "array 'w' has no place in its file");
  EXPECT_EQ(with_place("offset", "4"), beyond);
  EXPECT_EQ(with_place("length", "8"), "array 'w' does not have as many numbers as its shape says");
}

TEST_F(BadOnnxFile, ReadsNoMoreThanItsArraysHave) {
  const std::string place = entry("location", "four");
  EXPECT_EQ(refusal_of(model_of(external("w", '\1', place))), "accepted");
  const std::string half = external("v", '\2', place);
  EXPECT_EQ(refusal_of(model_of(half + external("w", '\2', place + entry("offset", "8")))),
            "accepted");
  EXPECT_EQ(refusal_of(model_of(half + external("w", '\3', place))),
            "array 'w' takes numbers of four that other arrays have");
}

TEST_F(BadOnnxFile, FollowsNoLinks) {
  std::filesystem::create_symlink("four", folder_.file("link"));
  EXPECT_EQ(refusal_of(model_with(entry("location", "link"))),
            "array 'w' is in 'link', which is a link; put the file itself beside it");
}

TEST_F(BadOnnxFile, HasEachNumberOnceAndWhole) {
  const std::string raw = field(9, std::string(8, '\0'));
  const std::string numbers = field(4, std::string(8, '\0'));
  EXPECT_EQ(refusal_of(model_of(tensor("w", '\2', raw))), "accepted");
  EXPECT_EQ(refusal_of(model_of(tensor("w", '\2', numbers))), "accepted");
  EXPECT_EQ(refusal_of(model_of(tensor("w", '\4', raw + numbers))),
            "array 'w' has its numbers twice");
  EXPECT_EQ(refusal_of(model_of(external("w", '\2', entry("location", "four") + raw))),
            "array 'w' has its numbers twice");
  EXPECT_EQ(refusal_of(model_of(tensor("w", '\2', field(9, std::string(9, '\0'))))),
            "array 'w' has a number that is cut off");
}

TEST_F(BadOnnxFile, IsOfOperatorsThatAreRead) {
  EXPECT_EQ(refusal_of(model_of("", field(8, field(2, '\7')))), "accepted");
  EXPECT_EQ(refusal_of(model_of("", field(8, field(2, '\6')))),
            "it has ONNX's operators of version 6; 7 and later are read");
  const std::string others = field(8, field(1, "com.microsoft") + field(2, '\21'));
  EXPECT_EQ(refusal_of(model_of("", others)),
            "it does not say which version of ONNX's operators it has");
}

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
