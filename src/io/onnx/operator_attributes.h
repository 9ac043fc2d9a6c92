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

/// What `layer` is in ONNX. Nothing where it takes several operators.
[[nodiscard]] std::optional<OnnxOperator> operator_of(const nets::Layer& layer);

/// The layer that does what `node` does, but for what its weights say: channels, features and
/// whether there is a bias. Nothing where its type is none of layer_operators.h's.
/// Throws: um::Error that names the node, and the attribute that no layer has.
[[nodiscard]] std::optional<nets::Layer> layer_of(const OnnxNode& node);

}  // namespace spillway
