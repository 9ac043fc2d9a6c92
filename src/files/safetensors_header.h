#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "um/files/input_file.h"

namespace spillway {

/// The entry of a header that is of no tensor.
inline constexpr const char* kTensorMetadata = "__metadata__";

/// A tensor as the header has it, and where its values lie behind the header.
struct TensorEntry {
  std::string name;
  std::string type;  ///< "F32"
  std::vector<std::size_t> shape;
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
};

/// What the first part of a safetensors file says of the rest.
struct SafetensorsHeader {
  std::uint64_t end = 0;             ///< where the values begin in the file
  std::vector<TensorEntry> entries;  ///< by place
};

/// Throws: um::Error that names the file when its header is not what it should be, or does not fit
/// the file.
[[nodiscard]] SafetensorsHeader read_safetensors_header(const um::InputFile& file);

/// Number of values of a shape; nothing when their bytes are too many for a 64-bit number.
[[nodiscard]] std::optional<std::uint64_t> count_elements(const std::vector<std::size_t>& shape);

}  // namespace spillway
