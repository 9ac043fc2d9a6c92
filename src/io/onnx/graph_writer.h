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

/// Fills `numbers` with those of the array `name` of a network: "conv1.weight", "bn1.running_mean".
using ArraySource = std::function<void(const std::string& name, std::span<float> numbers)>;

/// Appends operators and constants to a model. Values and constants are known by name; where one is
/// taken, such as by a layer `fc.flatten` beside `fc`, whose part is called so, a number is added.
class GraphWriter {
 public:
  /// Both must outlive it.
  GraphWriter(OnnxModel& model, const ArraySource& arrays) : model_{model}, arrays_{arrays} {}

  /// The operator `type` that reads `inputs`. Returns the value that it makes.
  std::string add(const std::string& type, const std::string& name, std::vector<std::string> inputs,
                  OnnxAttributes attributes = {});
  /// The same for one that makes as many values as there are in `outputs`, names for them.
  std::vector<std::string> add_several(const std::string& type, const std::string& name,
                                       std::vector<std::string> inputs,
                                       std::vector<std::string> outputs, OnnxAttributes attributes);

  /// The array `name` of the network. Returns its name; one that was there before is not added
  /// again. Throws: um::Error where something else is called so.
  std::string array(const std::string& name, std::vector<std::size_t> shape);
  /// A constant of floats. Returns its name; an equal one that was there is not added again.
  std::string floats(const std::string& name, std::vector<std::size_t> shape,
                     std::vector<float> numbers);
  /// A list of whole numbers, such as a shape. Likewise.
  std::string integers(const std::string& name, std::vector<std::int64_t> numbers);

 private:
  std::string constant(OnnxTensor tensor);

  OnnxModel& model_;
  const ArraySource& arrays_;
  um::FreeNames nodes_;
  um::FreeNames names_;                                        // of values, arrays and constants
  std::set<std::string> known_arrays_;                         // of the network
  std::map<std::string, std::vector<std::size_t>> constants_;  // numbers of tensors, by wanted name
};

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
