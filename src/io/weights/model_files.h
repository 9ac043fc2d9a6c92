#pragma once

#include <cstddef>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "src/io/safetensors.h"
#include "src/io/weights/tensor_places.h"
#include "um/error.h"

namespace spillway {

/// The tensors of a model in one safetensors file, or in several that an index lists, open for
/// reading.
class ModelFiles {
 public:
  /// Opens a file, an index ("model.safetensors.index.json"), or a folder with model.safetensors or
  /// that index, as Hugging Face's. Files of an index must be in its folder, as an index may be
  /// untrusted.
  /// Throws: um::Error that says which file is missing, names the type of other files that users
  /// often give, or says how index and files differ.
  explicit ModelFiles(const std::filesystem::path& path);

  /// Tensors of all files, file by file.
  [[nodiscard]] const std::vector<StoredTensor>& tensors() const { return tensors_; }
  /// Returns the index of the tensor `name`, or nothing.
  [[nodiscard]] std::optional<std::size_t> find(std::string_view name) const;
  /// Does as SafetensorsReader::read().
  void read(std::size_t index, std::span<float> values) const;

 private:
  void open_shards(const std::filesystem::path& index);
  void add(SafetensorsReader file);

  std::vector<SafetensorsReader> files_;
  std::vector<std::size_t> ends_;  // number of tensors of each file and those before it
  std::vector<StoredTensor> tensors_;
};

/// Returns the error for a network without a table of names.
[[nodiscard]] um::Error without_names(const std::string& network);

/// Returns the error for a network with an obstacle in its table.
[[nodiscard]] um::Error other_network_there(const std::string& network, const NameTable& table);

/// Returns the error for a model with other names than `wanted`, those of `network`.
[[nodiscard]] um::Error of_another_network(const ModelFiles& files,
                                           const std::filesystem::path& path,
                                           const std::string& network, const NamedTensors& wanted);

/// Returns advice about a missing tensor if the file name is that of one part, such as
/// "model-00001-of-00002.safetensors". Empty for other names.
[[nodiscard]] std::string advice_on_parts(const std::filesystem::path& path);

}  // namespace spillway
