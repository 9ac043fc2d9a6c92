#pragma once

#include <string>

#include "src/onnx/onnx_model.h"
#include "um/error.h"

namespace spillway {

/// "operator Conv of node 'conv1' " and `complaint`.
[[nodiscard]] inline um::Error node_error(const OnnxNode& node, const std::string& complaint) {
  return um::Error{"operator " + node.type + " of node '" + node.name + "' " + complaint};
}

/// Of an attribute that no layer has in this form.
[[nodiscard]] inline um::Error attribute_error(const OnnxNode& node, const std::string& word) {
  return node_error(node, "has a value of its attribute " + word + " that no layer has");
}

}  // namespace spillway
