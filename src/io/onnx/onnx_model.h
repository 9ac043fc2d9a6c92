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

/// What Spillway reads and writes of an ONNX file (github.com/onnx/onnx), as plain data: all but
/// the reader and the writer of files know ONNX by these alone.

/// A constant array, the last dimension next to each other. One of its two lists is in use.
struct OnnxTensor {
  std::string name;
  std::vector<std::size_t> shape;
  std::vector<float> floats;
  std::vector<std::int64_t> integers;

  friend bool operator==(const OnnxTensor&, const OnnxTensor&) = default;
};

/// The value of an attribute: nothing where it is of a type that no supported operator has.
using OnnxAttribute = std::variant<std::monostate, std::int64_t, float, std::string,
                                   std::vector<std::int64_t>, OnnxTensor>;
using OnnxAttributes = std::map<std::string, OnnxAttribute>;

/// One operator at work: what it reads and makes, by name. An input that is left out is "".
struct OnnxNode {
  std::string type;  ///< "Conv"; of another set of operators than ONNX's, "com.microsoft.Gelu"
  std::string name;
  std::vector<std::string> inputs;
  std::vector<std::string> outputs;
  OnnxAttributes attributes;

  friend bool operator==(const OnnxNode&, const OnnxNode&) = default;
};

/// What a graph is given or gives back.
struct OnnxValue {
  std::string name;
  bool is_float = true;  ///< otherwise 64-bit whole numbers, or something else
  std::vector<std::optional<std::size_t>> shape;  ///< nothing: any size, such as the batch's

  friend bool operator==(const OnnxValue&, const OnnxValue&) = default;
};

/// The version of ONNX's operators that files are written for.
inline constexpr std::int64_t kOnnxOperators = 17;
/// The oldest version that is read: before it, operators broadcast in another way.
inline constexpr std::int64_t kOldestOnnxOperators = 7;

/// A graph with its constants. Nodes stand behind those whose values they read.
struct OnnxModel {
  std::string name;
  std::string producer;
  std::int64_t operators = kOnnxOperators;  ///< the version of ONNX's
  std::vector<OnnxValue> inputs;
  std::vector<OnnxValue> outputs;
  std::vector<OnnxNode> nodes;
  std::vector<OnnxTensor> tensors;
  std::map<std::string, std::string> metadata;

  friend bool operator==(const OnnxModel&, const OnnxModel&) = default;
};

/// The producer that files of Spillway name.
inline constexpr std::string_view kOnnxProducer = "spillway";

/// Whether this build reads and writes ONNX files. Where it was built without ONNX's library, the
/// functions below throw um::Error, which says so.
[[nodiscard]] bool has_onnx_library();

/// Throws: um::Error where this build does neither, for a sentence that comes before any work.
void expect_onnx_library(const std::filesystem::path& path);

/// Whether a name is that of an ONNX file: it ends in ".onnx".
[[nodiscard]] inline bool is_onnx_file(std::string_view name) { return name.ends_with(".onnx"); }

/// Reads a file of at most 2 GiB, and the arrays that it keeps in files beside it. Floats of 16 and
/// 64 bits become those of 32. Throws: um::Error, one sentence that names the file, and the array
/// that is cut off, has numbers of another type, or is in a file of another folder; also where its
/// operators are older than kOldestOnnxOperators.
[[nodiscard]] OnnxModel read_onnx(const std::filesystem::path& path);

/// Writes `model` as one file; one that is there is replaced as a whole, or stays. Throws:
/// um::Error when it cannot be written, or would be larger than the 2 GiB that ONNX files may have.
void write_onnx(OnnxModel model, const std::filesystem::path& path);

}  // namespace spillway
