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

/// The tensors of a model that is one safetensors file, or several that an index lists, open for
/// reading.
class ModelFiles {
 public:
  /// Opens a file, the index of several ("model.safetensors.index.json"), or a folder as those of
  /// Hugging Face, with model.safetensors or that index. Files that an index lists are beside it:
  /// it may come from a stranger.
  /// Throws: um::Error that says which file is missing, what a file is where it is one of those
  /// that are often given instead, or in what index and files differ.
  explicit ModelFiles(const std::filesystem::path& path);

  /// Of all files, one file after the other.
  [[nodiscard]] const std::vector<StoredTensor>& tensors() const { return tensors_; }
  /// The number of the tensor of this name, or nothing.
  [[nodiscard]] std::optional<std::size_t> find(std::string_view name) const;
  /// As SafetensorsReader::read().
  void read(std::size_t index, std::span<float> values) const;

 private:
  void open_shards(const std::filesystem::path& index);
  void add(SafetensorsReader file);

  std::vector<SafetensorsReader> files_;
  std::vector<std::size_t> ends_;  // tensors of each file and those before it
  std::vector<StoredTensor> tensors_;
};

/// What to say of a network that no table has the names of.
[[nodiscard]] um::Error without_names(const std::string& network);

/// What to say of a network with an obstacle in its table.
[[nodiscard]] um::Error other_network_there(const std::string& network, const NameTable& table);

/// What to say of a model with other names than `network` has by `wanted`.
[[nodiscard]] um::Error of_another_network(const ModelFiles& files,
                                           const std::filesystem::path& path,
                                           const std::string& network, const NamedTensors& wanted);

/// What to add to a sentence about a missing tensor where the name of the file is that of one of
/// several: "model-00001-of-00002.safetensors". Empty for others.
[[nodiscard]] std::string advice_on_parts(const std::filesystem::path& path);

}  // namespace spillway
