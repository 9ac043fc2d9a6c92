#pragma once

#include <cstddef>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "nets/builder.h"
#include "src/io/onnx/graph_reader.h"
#include "src/io/onnx/import_onnx.h"

namespace spillway {

/// The arrays of imported layers.
class ImportedArrays {
 public:
  /// Stores input `index` of `node`, weights of this shape, as the array `name`.
  /// Throws: um::Error that names the node when the shape differs, a number is not finite, or an
  /// earlier layer has the same matrix. (Vectors may be shared: exporters write equal ones once.)
  void take(const GraphReader& graph, const OnnxNode& node, std::size_t index,
            const std::string& name, const std::vector<std::size_t>& shape);
  /// Transposes the array `name` from (rows, columns) to (columns, rows). Requires: it exists.
  void transpose(const std::string& name, std::size_t columns);
  /// Returns all arrays by name. No other call may follow.
  [[nodiscard]] std::map<std::string, std::vector<float>> release() { return std::move(arrays_); }

 private:
  std::map<std::string, std::vector<float>> arrays_;
  std::set<const OnnxTensor*> matrices_;  // of layers so far; of two dimensions or more
};

/// The layers and arrays of a graph.
struct ReadGraph {
  nets::Network network;
  std::map<std::string, std::vector<float>> arrays;  ///< by name: "conv1.weight"
};

/// Converts a graph's nodes to layers, one after the other.
class GraphImport {
 public:
  /// `graph` must outlive the import. Throws: as GraphReader::image() does.
  GraphImport(const GraphReader& graph, const std::string& name);

  /// Imports the graph; no other call may follow. Throws: um::Error as import_onnx() does, without
  /// the file's name.
  [[nodiscard]] ReadGraph run();

 private:
  // A value of the graph and the layer that computes it.
  struct Value {
    nets::NodeId node;
    bool is_flat = false;  // (batch, C H W)
    std::string flattened_by = {};
  };
  using Read = void (GraphImport::*)(const OnnxNode& node);
  [[nodiscard]] static const std::map<std::string, Read>& readers();

  void read(const OnnxNode& node);
  template <typename L>
  void read_convolution(const OnnxNode& node);
  void read_batch_norm(const OnnxNode& node);
  void read_gemm(const OnnxNode& node);
  void read_mat_mul(const OnnxNode& node);
  void read_plain(const OnnxNode& node);
  void read_dropout(const OnnxNode& node);
  void read_pool(const OnnxNode& node);
  void read_mean(const OnnxNode& node);
  void read_flatten(const OnnxNode& node);
  void read_reshape(const OnnxNode& node);
  void read_squeeze(const OnnxNode& node);
  void read_identity(const OnnxNode& node);
  void read_softmax(const OnnxNode& node);

  // Adds a linear layer with weights (out, in), or (in, out) with `is_in_out`.
  void add_linear(const OnnxNode& node, bool is_in_out, const std::string& bias,
                  const std::string& output);
  nets::NodeId add(const OnnxNode& node, const std::string& name, nets::Layer layer,
                   std::vector<nets::NodeId> inputs, bool is_flat = false);
  [[nodiscard]] Value& input(const OnnxNode& node, std::size_t index = 0);
  // Returns the node of an input, after a Flatten layer if the graph flattens it.
  nets::NodeId unflattened(const OnnxNode& node, std::size_t index);
  void flatten(Value& value);
  [[nodiscard]] const nets::Shape& shape(const Value& value) const {
    return builder_.shape(value.node);
  }

  const GraphReader& graph_;
  nets::Builder builder_;
  LayerNames names_;
  std::map<std::string, Value> values_;
  std::set<const OnnxNode*> done_;  // before their turn
  ImportedArrays arrays_;
};

}  // namespace spillway
