#pragma once

#include <cstddef>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "src/io/safetensors.h"
#include "src/io/weights/name_table.h"

namespace spillway {

/// A tensor of a file and the range of our array that it fills.
struct TensorPlace {
  std::string name;                ///< in the file
  std::vector<std::size_t> shape;  ///< in the file
  std::size_t array = 0;           ///< index of the array
  std::size_t begin = 0;           ///< of its first number in the array
  bool is_transposed = false;      ///< (in, out) in the file, (out, in) in the array
};

/// Number of elements of a shape.
[[nodiscard]] std::size_t element_count(std::span<const std::size_t> shape);

/// A table applied to a network.
struct NamedTensors {
  NameTable table;
  std::vector<TensorPlace> places;  ///< in the order of the arrays, without gaps
  std::set<std::string> names;      ///< names of the places

  /// Returns the first tensor of the array that marks the network.
  [[nodiscard]] const TensorPlace& mark(std::span<const StoredTensor> arrays) const;
};

/// Returns each table that has names for all `arrays`.
[[nodiscard]] std::vector<NamedTensors> named_tensors(std::span<const StoredTensor> arrays);

/// Transposes `from`, (rows, columns), into `to`, (columns, rows). Requires: both have the same
/// size.
void transpose(std::span<const float> from, std::size_t columns, std::span<float> to);

/// Returns a checkpoint's name for the moving average of an array: "conv1.average.weight" for
/// "conv1.weight".
[[nodiscard]] std::string average_of(const std::string& array);

/// Returns whether the array `name` of `checkpoint` is optimizer state or an average of another
/// array: "conv1.momentum.weight" beside "conv1.weight".
[[nodiscard]] bool is_kept_beside(const std::string& name, const SafetensorsReader& checkpoint);

/// Returns whether `checkpoint` has moving averages.
[[nodiscard]] bool has_averages(const SafetensorsReader& checkpoint);

}  // namespace spillway
