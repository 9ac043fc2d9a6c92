#pragma once

#include <optional>
#include <string>

#include "nets/layer.h"
#include "src/io/onnx/onnx_model.h"

namespace spillway {

/// An operator's type and attributes.
struct OnnxOperator {
  std::string type;
  OnnxAttributes attributes;
};

/// Returns the operator for `layer`. Nothing where it takes several operators.
[[nodiscard]] std::optional<OnnxOperator> operator_of(const nets::Layer& layer);

/// Returns the layer for `node`, without what its weights determine: channels, features and bias.
/// Nothing where the table of operators lacks its type.
/// Throws: um::Error that names the node and the attribute that layers do not support.
[[nodiscard]] std::optional<nets::Layer> layer_of(const OnnxNode& node);

}  // namespace spillway
