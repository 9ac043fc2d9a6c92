#pragma once

#include <optional>
#include <string>

#include "nets/layer.h"
#include "nets/shape.h"
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

/// Returns `node`, which moves a window over `image`, with equal windows in the form that layers
/// use: even `pads` and ceil_mode, without auto_pad. `kernel` is the window if the node does not
/// say it.
/// Throws: um::Error that names the node if no layer can have its windows.
[[nodiscard]] OnnxNode with_even_padding(const OnnxNode& node, const nets::Shape& image,
                                         const std::optional<nets::Extent>& kernel = {});

}  // namespace spillway
