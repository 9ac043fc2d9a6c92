#pragma once

#include <cstddef>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "src/onnx/graph_reader.h"

namespace spillway {

/// The arrays of the layers that a graph becomes.
class ImportedArrays {
 public:
  /// Keeps input `index` of `node`, weights of this shape, as the array `name`.
  /// Throws: um::Error that names the node, where they have another or are not finite, or are more
  /// than a list and those of an earlier layer, too: exporters write equal lists once.
  void take(const GraphReader& graph, const OnnxNode& node, std::size_t index,
            const std::string& name, const std::vector<std::size_t>& shape);
  /// Turns the array `name`, (rows, columns), into (columns, rows). Requires: it is there.
  void transpose(const std::string& name, std::size_t columns);
  /// All of them, by name. Nothing may follow.
  [[nodiscard]] std::map<std::string, std::vector<float>> release() { return std::move(arrays_); }

 private:
  std::map<std::string, std::vector<float>> arrays_;
  std::set<const OnnxTensor*> matrices_;  // that layers have; of two dimensions or more
};

}  // namespace spillway
