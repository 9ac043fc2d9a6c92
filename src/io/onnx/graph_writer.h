#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "nets/network.h"
#include "src/io/onnx/onnx_model.h"
#include "um/text/wording.h"

namespace spillway {

/// Fills `numbers` with the array `name` of a network: "conv1.weight", "bn1.running_mean".
using ArraySource = std::function<void(const std::string& name, std::span<float> numbers)>;

/// Appends operators and constants to a model. Names of values and constants are unique. A number
/// is added to a name that is taken, such as a part `flatten` of layer `fc` beside a layer
/// `fc.flatten`.
class GraphWriter {
 public:
  /// `model` and `arrays` must outlive the writer.
  GraphWriter(OnnxModel& model, const ArraySource& arrays) : model_{model}, arrays_{arrays} {}

  /// Adds the operator `type` that reads `inputs`. Returns the name of its output.
  std::string add(const std::string& type, const std::string& name, std::vector<std::string> inputs,
                  OnnxAttributes attributes = {});
  /// Adds an operator with several outputs, one for each name in `outputs`. Returns their final
  /// names.
  std::vector<std::string> add_several(const std::string& type, const std::string& name,
                                       std::vector<std::string> inputs,
                                       std::vector<std::string> outputs, OnnxAttributes attributes);

  /// Adds the array `name` of the network unless it is there already. Returns its name. Throws:
  /// um::Error where something else has this name.
  std::string array(const std::string& name, std::vector<std::size_t> shape);
  /// Adds a constant of floats unless an equal one is there. Returns its name.
  std::string floats(const std::string& name, std::vector<std::size_t> shape,
                     std::vector<float> numbers);
  /// Adds a constant list of integers, such as a shape, unless an equal one is there. Returns its
  /// name.
  std::string integers(const std::string& name, std::vector<std::int64_t> numbers);

 private:
  std::string constant(OnnxTensor tensor);

  OnnxModel& model_;
  const ArraySource& arrays_;
  um::FreeNames nodes_;
  um::FreeNames names_;                                        // of values, arrays and constants
  std::set<std::string> known_arrays_;                         // of the network
  std::map<std::string, std::vector<std::size_t>> constants_;  // indices of tensors, by wanted name
};

/// A value of the graph that a layer computes.
struct LayerValue {
  std::string name;
  nets::Shape shape;
  bool is_flat = false;  ///< (batch, C) rather than (batch, C, 1, 1)
};

/// A layer that is being written: its inputs, and names for its operators.
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

  /// Returns the name of a part of the layer: "conv1.flatten".
  [[nodiscard]] std::string part(const std::string& name) const { return node_.name + "." + name; }
  /// Adds an operator inside the layer. Returns its output.
  [[nodiscard]] std::string add(const std::string& type, const std::string& name,
                                std::vector<std::string> inputs,
                                OnnxAttributes attributes = {}) const {
    return graph_.add(type, part(name), std::move(inputs), std::move(attributes));
  }
  /// Adds the operator that computes the layer's output.
  [[nodiscard]] std::string last(const std::string& type, std::vector<std::string> inputs,
                                 OnnxAttributes attributes = {}) const {
    return graph_.add(type, node_.name, std::move(inputs), std::move(attributes));
  }

  /// Adds an array of the layer: ".weight" for "conv1.weight".
  [[nodiscard]] std::string array(const std::string& suffix, std::vector<std::size_t> shape) const {
    return graph_.array(node_.name + suffix, std::move(shape));
  }
  [[nodiscard]] std::string integers(const std::string& name,
                                     std::vector<std::int64_t> numbers) const {
    return graph_.integers(part(name), std::move(numbers));
  }
  /// Adds one number that only this layer uses.
  [[nodiscard]] std::string number(const std::string& name, float value) const {
    return graph_.floats(part(name), {}, {value});
  }

  /// Return an input as (batch, C), and as (batch, C, H, W).
  [[nodiscard]] std::string flat(std::size_t input = 0) const;
  [[nodiscard]] std::string image(std::size_t input = 0) const;

 private:
  GraphWriter& graph_;
  const nets::Node& node_;
  std::vector<LayerValue> inputs_;
};

}  // namespace spillway
