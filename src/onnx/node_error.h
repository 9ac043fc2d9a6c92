#pragma once

#include <string>

#include "src/onnx/onnx_model.h"
#include "um/error.h"

namespace spillway {

/// "operator Conv of node 'conv1' " and `complaint`.
[[nodiscard]] inline um::Error node_error(const OnnxNode& node, const std::string& complaint) {
  return um::Error{"operator " + node.type + " of node '" + node.name + "' " + complaint};
}

}  // namespace spillway
