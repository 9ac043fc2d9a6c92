// Files that are no ONNX, and arrays that are elsewhere.

#include <gtest/gtest.h>

#include <cstdint>
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

// A model whose only array, four floats, is in another file.
std::string model_with(const std::string& external) {
  const std::string tensor =
      field(1, '\4') + field(2, '\1') + field(8, "w") + external + field(14, '\1');
  const std::string node = field(1, "x") + field(2, "y") + field(4, "Relu");
  return field(7, field(1, node) + field(5, tensor));
}

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

TEST_F(BadOnnxFile, ReadsNoFurtherThanTheFileGoes) {
  const auto with_place = [&](const std::string& key, const std::string& value) {
    return refusal_of(model_with(entry("location", "four") + entry(key, value)));
  };
  const std::string beyond = "array 'w' goes beyond the end of four";
  EXPECT_EQ(with_place("offset", "17"), beyond);
  EXPECT_EQ(with_place("length", "17"), beyond);
  EXPECT_EQ(with_place("length", "999999999999999999"), beyond);
  EXPECT_EQ(with_place("length", "-1"), "array 'w' has no place in its file");
  EXPECT_EQ(with_place("offset", "4"), "array 'w' does not have as many numbers as its shape says");
}

}  // namespace
}  // namespace spillway::test
