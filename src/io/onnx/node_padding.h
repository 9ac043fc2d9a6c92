#pragma once

#include <optional>

#include "nets/shape.h"
#include "src/io/onnx/onnx_model.h"

namespace spillway {

/// Returns `node`, which moves a window over `image`, with equal windows in the form that layers
/// use: even `pads` and ceil_mode, without auto_pad. `kernel` is the window if the node does not
/// say it.
/// Throws: um::Error that names the node if no layer can have its windows.
[[nodiscard]] OnnxNode with_even_padding(const OnnxNode& node, const nets::Shape& image,
                                         const std::optional<nets::Extent>& kernel = {});

}  // namespace spillway
