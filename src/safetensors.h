#pragma once

#include <cstddef>
#include <filesystem>
#include <map>
#include <span>
#include <string>
#include <vector>

namespace spillway {

/// An array of 32-bit floats, the last dimension next to each other.
struct NamedTensor {
  std::string name;
  std::vector<std::size_t> shape;
  std::vector<float> values;
};

/// What a safetensors file holds.
struct Safetensors {
  std::vector<NamedTensor> tensors;  ///< in the order of the file
  std::map<std::string, std::string> metadata;
};

/// Writes a file in the safetensors format (github.com/huggingface/safetensors), as a whole or not
/// at all.
/// Requires: different names, none of them "__metadata__"; as many values as each shape has.
/// Throws: um::Error when the file cannot be written.
void write_safetensors(const std::filesystem::path& path, std::span<const NamedTensor> tensors,
                       const std::map<std::string, std::string>& metadata = {});

/// Reads a safetensors file of 32-bit floats.
/// Throws: um::Error that names the file when it is missing, cut off or not what it should be.
[[nodiscard]] Safetensors read_safetensors(const std::filesystem::path& path);

}  // namespace spillway
