#pragma once

#include <cstddef>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "src/files/safetensors.h"
#include "src/weights/name_table.h"

namespace spillway {

/// A tensor of a file, and the stretch of an array of ours that it is.
struct TensorPlace {
  std::string name;                ///< in the file
  std::vector<std::size_t> shape;  ///< in the file
  std::size_t array = 0;           ///< by number
  std::size_t begin = 0;           ///< the first of its numbers in the array
  bool is_transposed = false;      ///< (in, out) in the file, (out, in) in the array
};

/// Numbers of a tensor of this shape.
[[nodiscard]] std::size_t element_count(std::span<const std::size_t> shape);

/// A table with what it says of a network.
struct NamedTensors {
  NameTable table;
  std::vector<TensorPlace> places;  ///< in the order of the arrays, which they cover
  std::set<std::string> names;      ///< of these

  /// The first tensor of the array that marks the network.
  [[nodiscard]] const TensorPlace& mark(std::span<const StoredTensor> arrays) const;
};

/// Each table that has the names of all `arrays`.
[[nodiscard]] std::vector<NamedTensors> named_tensors(std::span<const StoredTensor> arrays);

/// `from`, (rows, columns), as (columns, rows). Requires: as many numbers in `to`.
void transpose(std::span<const float> from, std::size_t columns, std::span<float> to);

}  // namespace spillway
