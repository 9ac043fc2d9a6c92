#pragma once

#include <cstddef>
#include <filesystem>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "src/files/safetensors.h"

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

}  // namespace spillway
