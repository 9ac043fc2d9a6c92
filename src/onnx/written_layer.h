#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "nets/network.h"
#include "src/onnx/graph_writer.h"

namespace spillway {

/// A value of the graph that a layer makes.
struct LayerValue {
  std::string name;
  nets::Shape shape;
  bool is_flat = false;  ///< (batch, C) and not (batch, C, 1, 1)
};

/// A layer that is being written: the values it reads, and names for what it becomes.
class WrittenLayer {
 public:
  /// `graph` and `node` must outlive it.
  WrittenLayer(GraphWriter& graph, const nets::Node& node, std::vector<LayerValue> inputs)
      : graph_{graph}, node_{node}, inputs_{std::move(inputs)} {}

  [[nodiscard]] GraphWriter& graph() const { return graph_; }
  [[nodiscard]] const nets::Node& node() const { return node_; }
  [[nodiscard]] const std::vector<LayerValue>& inputs() const { return inputs_; }
  [[nodiscard]] const nets::Shape& x() const { return inputs_.front().shape; }
  [[nodiscard]] const std::string& read(std::size_t input = 0) const { return inputs_[input].name; }

  /// "conv1.flatten": a part of the layer.
  [[nodiscard]] std::string part(const std::string& name) const { return node_.name + "." + name; }
  /// An operator that is a part of the layer. Returns its value.
  [[nodiscard]] std::string add(const std::string& type, const std::string& name,
                                std::vector<std::string> inputs,
                                OnnxAttributes attributes = {}) const {
    return graph_.add(type, part(name), std::move(inputs), std::move(attributes));
  }
  /// The operator that makes what the layer makes.
  [[nodiscard]] std::string last(const std::string& type, std::vector<std::string> inputs,
                                 OnnxAttributes attributes = {}) const {
    return graph_.add(type, node_.name, std::move(inputs), std::move(attributes));
  }

  /// An array of the layer: "conv1.weight" by ".weight".
  [[nodiscard]] std::string array(const std::string& suffix, std::vector<std::size_t> shape) const {
    return graph_.array(node_.name + suffix, std::move(shape));
  }
  [[nodiscard]] std::string integers(const std::string& name,
                                     std::vector<std::int64_t> numbers) const {
    return graph_.integers(part(name), std::move(numbers));
  }
  /// One number, of this layer alone.
  [[nodiscard]] std::string number(const std::string& name, float value) const {
    return graph_.floats(part(name), {}, {value});
  }

  /// An input as (batch, C), and as (batch, C, H, W).
  [[nodiscard]] std::string flat(std::size_t input = 0) const;
  [[nodiscard]] std::string image(std::size_t input = 0) const;

 private:
  GraphWriter& graph_;
  const nets::Node& node_;
  std::vector<LayerValue> inputs_;
};

}  // namespace spillway
