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

/// A model's graph: its constants, who reads what, and which nodes the output needs.
class GraphReader {
 public:
  /// Throws: um::Error where a name stands for two values, or the graph has not one input and one
  /// output beside its constants.
  explicit GraphReader(OnnxModel model);
  ~GraphReader() = default;
  GraphReader(const GraphReader&) = delete;  // nodes are known by their addresses
  GraphReader& operator=(const GraphReader&) = delete;
  GraphReader(GraphReader&&) = delete;
  GraphReader& operator=(GraphReader&&) = delete;

  [[nodiscard]] const OnnxModel& model() const { return model_; }
  [[nodiscard]] const OnnxValue& input() const { return model_.inputs[input_]; }
  [[nodiscard]] const std::string& output() const { return model_.outputs.front().name; }

  /// The constant of this name; null where it is none.
  [[nodiscard]] const OnnxTensor* constant(const std::string& name) const;
  /// The numbers of a constant list of whole ones, such as a shape or axes; nothing for others.
  [[nodiscard]] std::optional<std::vector<std::int64_t>> integers(const std::string& name) const;

  /// What each image of the input is. Throws: um::Error where it is no image, and no vector, of one
  /// size.
  [[nodiscard]] nets::Shape image() const;
  /// Input `index` of `node`, a constant of floats. Throws: um::Error where it is none.
  [[nodiscard]] const OnnxTensor& weights(const OnnxNode& node, std::size_t index) const;
  /// The axes that `node` works on: its second input in newer files, an attribute in older ones;
  /// empty where it has none, or they are no constants.
  [[nodiscard]] std::vector<std::int64_t> axes(const OnnxNode& node) const;

  /// Whether the output depends on `node`.
  [[nodiscard]] bool is_needed(const OnnxNode& node) const;
  /// The one node that reads `value`; null where there are several, or it is the output.
  [[nodiscard]] const OnnxNode* only_reader(const std::string& value) const;

 private:
  void find_input();
  void add_constant(const std::string& name, std::size_t tensor);
  void take_constants();
  void find_readers();

  OnnxModel model_;
  std::size_t input_ = 0;
  std::map<std::string, std::size_t> constants_;  // numbers of tensors
  std::map<std::string, std::vector<const OnnxNode*>> readers_;
  std::set<const OnnxNode*> needed_;
};

/// Whether `node` has an input number `index`, which is not left out.
[[nodiscard]] bool has_input(const OnnxNode& node, std::size_t index);
/// An attribute that is a whole number; `otherwise` where it is left out, or is something else.
[[nodiscard]] std::int64_t integer_attribute(const OnnxNode& node, const std::string& word,
                                             std::int64_t otherwise);

/// "operator Conv of node 'conv1' " and `complaint`.
[[nodiscard]] inline um::Error node_error(const OnnxNode& node, const std::string& complaint) {
  return um::Error{"operator " + node.type + " of node '" + node.name + "' " + complaint};
}

/// Of an attribute that no layer has in this form.
[[nodiscard]] inline um::Error attribute_error(const OnnxNode& node, const std::string& word) {
  return node_error(node, "has a value of its attribute " + word + " that no layer has");
}

}  // namespace spillway
