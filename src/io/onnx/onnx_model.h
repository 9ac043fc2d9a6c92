#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace spillway {

/// The parts of an ONNX file (github.com/onnx/onnx) that Spillway uses, as plain data. Only the
/// reader and the writer of files use ONNX's library.

/// A constant array, row-major. Only one of its two lists is used.
struct OnnxTensor {
  std::string name;
  std::vector<std::size_t> shape;
  std::vector<float> floats;
  std::vector<std::int64_t> integers;

  friend bool operator==(const OnnxTensor&, const OnnxTensor&) = default;
};

/// The value of an attribute; monostate for types that no supported operator has.
using OnnxAttribute = std::variant<std::monostate, std::int64_t, float, std::string,
                                   std::vector<std::int64_t>, OnnxTensor>;
using OnnxAttributes = std::map<std::string, OnnxAttribute>;

/// One operator call: names of its inputs and outputs. An omitted input is "".
struct OnnxNode {
  std::string type;  ///< "Conv"; outside ONNX's own set of operators: "com.microsoft.Gelu"
  std::string name;
  std::vector<std::string> inputs;
  std::vector<std::string> outputs;
  OnnxAttributes attributes;

  friend bool operator==(const OnnxNode&, const OnnxNode&) = default;
};

/// An input or output of a graph.
struct OnnxValue {
  std::string name;
  bool is_float = true;                           ///< otherwise 64-bit integers or another type
  std::vector<std::optional<std::size_t>> shape;  ///< nothing: any size, such as the batch

  friend bool operator==(const OnnxValue&, const OnnxValue&) = default;
};

/// The version of ONNX's operators in written files.
inline constexpr std::int64_t kOnnxOperators = 17;
/// The oldest version that can be read: earlier operators broadcast in another way.
inline constexpr std::int64_t kOldestOnnxOperators = 7;

/// A graph with its constants. Nodes come after those that compute their inputs.
struct OnnxModel {
  std::string name;
  std::string producer;
  std::int64_t operators = kOnnxOperators;  ///< version of ONNX's operators
  std::vector<OnnxValue> inputs;
  std::vector<OnnxValue> outputs;
  std::vector<OnnxNode> nodes;
  std::vector<OnnxTensor> tensors;
  std::map<std::string, std::string> metadata;

  friend bool operator==(const OnnxModel&, const OnnxModel&) = default;
};

/// The producer in files that Spillway writes.
inline constexpr std::string_view kOnnxProducer = "spillway";

/// Returns whether this build reads and writes ONNX files. If built without ONNX's library, the
/// functions below throw um::Error that says so.
[[nodiscard]] bool has_onnx_library();

/// Throws: um::Error where this build cannot use ONNX files. Call it before any work.
void expect_onnx_library(const std::filesystem::path& path);

/// Returns whether a file name ends in ".onnx".
[[nodiscard]] inline bool is_onnx_file(std::string_view name) { return name.ends_with(".onnx"); }

/// Reads a file of at most 2 GiB and the arrays in files beside it. Converts floats of 16 and 64
/// bits to 32 bits. Throws: um::Error, one sentence that names the file and the array, when an
/// array is cut off, has an unknown type or lies in another folder; also for operators older than
/// kOldestOnnxOperators.
[[nodiscard]] OnnxModel read_onnx(const std::filesystem::path& path);

/// Writes `model` as one file, which replaces an existing file atomically. Throws: um::Error when
/// it cannot be written or exceeds ONNX's limit of 2 GiB.
void write_onnx(OnnxModel model, const std::filesystem::path& path);

}  // namespace spillway
