// Files that are no ONNX, and arrays that are elsewhere.

#include <gtest/gtest.h>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>

#include "src/onnx/onnx_file.h"
#include "tests/refusal.h"
#include "tests/temporary_folder.h"

namespace spillway::test {
namespace {

// A field of a protobuf message: bytes, or a small number.
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

// A file with one node, of operators 17 unless `versions` says otherwise.
std::string model_of(const std::string& tensors,
                     const std::string& versions = field(8, field(2, '\21'))) {
  const std::string node = field(1, "x") + field(2, "y") + field(4, "Relu");
  return field(7, field(1, node) + tensors) + versions;
}

// An array of `count` floats.
std::string tensor(const std::string& name, char count, const std::string& content) {
  return field(5, field(1, count) + field(2, '\1') + field(8, name) + content);
}
std::string external(const std::string& name, char count, const std::string& place) {
  return tensor(name, count, place + field(14, '\1'));
}

// A model whose only array, four floats, is in another file.
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

}  // namespace
}  // namespace spillway::test
