#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "nets/shape.h"
#include "src/io/onnx/onnx_model.h"
#include "um/error.h"

namespace spillway {

/// A model's graph: its constants, the readers of each value, and the nodes that the output needs.
class GraphReader {
 public:
  /// Throws: um::Error when a name has two values, or when there is not exactly one input besides
  /// the constants and one output.
  explicit GraphReader(OnnxModel model);
  ~GraphReader() = default;
  GraphReader(const GraphReader&) = delete;  // nodes are identified by address
  GraphReader& operator=(const GraphReader&) = delete;
  GraphReader(GraphReader&&) = delete;
  GraphReader& operator=(GraphReader&&) = delete;

  [[nodiscard]] const OnnxModel& model() const { return model_; }
  [[nodiscard]] const OnnxValue& input() const { return model_.inputs[input_]; }
  [[nodiscard]] const std::string& output() const { return model_.outputs.front().name; }

  /// Returns the constant `name`, or null.
  [[nodiscard]] const OnnxTensor* constant(const std::string& name) const;
  /// Returns a constant list of integers, such as a shape or axes; nothing for other values.
  [[nodiscard]] std::optional<std::vector<std::int64_t>> integers(const std::string& name) const;

  /// Returns the shape of each image of the input. Throws: um::Error unless the input has images or
  /// vectors of one fixed size.
  [[nodiscard]] nets::Shape image() const;
  /// Returns input `index` of `node`, a constant of floats. Throws: um::Error for other inputs.
  [[nodiscard]] const OnnxTensor& weights(const OnnxNode& node, std::size_t index) const;
  /// Returns the axes that `node` works on. Newer files have them as second input, older ones as an
  /// attribute. Empty where they are missing or not constant.
  [[nodiscard]] std::vector<std::int64_t> axes(const OnnxNode& node) const;

  /// Returns whether the output depends on `node`.
  [[nodiscard]] bool is_needed(const OnnxNode& node) const;
  /// Returns the only node that reads `value`; null where there are several, or `value` is the
  /// output.
  [[nodiscard]] const OnnxNode* only_reader(const std::string& value) const;

 private:
  void find_input();
  void add_constant(const std::string& name, std::size_t tensor);
  void take_constants();
  void find_readers();

  OnnxModel model_;
  std::size_t input_ = 0;
  std::map<std::string, std::size_t> constants_;  // indices of tensors
  std::map<std::string, std::vector<const OnnxNode*>> readers_;
  std::set<const OnnxNode*> needed_;
};

/// Returns whether `node` has an input `index` that is not omitted.
[[nodiscard]] bool has_input(const OnnxNode& node, std::size_t index);
/// Returns an integer attribute, or `otherwise` where it is missing or of another type.
[[nodiscard]] std::int64_t integer_attribute(const OnnxNode& node, const std::string& word,
                                             std::int64_t otherwise);

/// Returns the error "operator Conv of node 'conv1' " and `complaint`.
[[nodiscard]] inline um::Error node_error(const OnnxNode& node, const std::string& complaint) {
  return um::Error{"operator " + node.type + " of node '" + node.name + "' " + complaint};
}

/// Returns the error for an attribute value that layers do not support.
[[nodiscard]] inline um::Error attribute_error(const OnnxNode& node, const std::string& word) {
  return node_error(node, "has a value of its attribute " + word + " that no layer has");
}

}  // namespace spillway
