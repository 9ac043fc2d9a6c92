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

/// What a graph's nodes are as layers.
struct ReadGraph {
  nets::Network network;
  std::map<std::string, std::vector<float>> arrays;  ///< by name: "conv1.weight"
};

/// Makes layers of a graph's nodes, one after the other.
class GraphImport {
 public:
  /// `graph` must outlive it. Throws: as GraphReader::image() does.
  GraphImport(const GraphReader& graph, const std::string& name);

  /// Throws: um::Error as import_onnx() does, but for the file's name. Nothing may follow.
  [[nodiscard]] ReadGraph run();

 private:
  // A value of the graph, and the layer that makes it.
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

  // A linear layer with weights (out, in), or with `is_in_out` the other way round.
  void add_linear(const OnnxNode& node, bool is_in_out, const std::string& bias,
                  const std::string& output);
  nets::NodeId add(const OnnxNode& node, const std::string& name, nets::Layer layer,
                   std::vector<nets::NodeId> inputs, bool is_flat = false);
  [[nodiscard]] Value& input(const OnnxNode& node, std::size_t index = 0);
  // As a layer reads it that does not look at all numbers of an image alike.
  nets::NodeId unflattened(const OnnxNode& node, std::size_t index);
  void flatten(Value& value);
  [[nodiscard]] const nets::Shape& shape(const Value& value) const {
    return builder_.shape(value.node);
  }

  const GraphReader& graph_;
  nets::Builder builder_;
  LayerNames names_;
  std::map<std::string, Value> values_;
  std::set<const OnnxNode*> done_;  // ahead of their turn
  ImportedArrays arrays_;
};

}  // namespace spillway
