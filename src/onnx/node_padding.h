#pragma once

#include <optional>

#include "nets/shape.h"
#include "src/onnx/onnx_model.h"

namespace spillway {

/// Returns `node`, which moves a window over `image`, with the same windows said as layers say
/// them: by attribute pads, as much on one side as on the other, and by ceil_mode, without
/// auto_pad. `kernel` is the window where the node does not say it.
/// Throws: um::Error that names the node where a layer cannot have its windows.
[[nodiscard]] OnnxNode with_even_padding(const OnnxNode& node, const nets::Shape& image,
                                         const std::optional<nets::Extent>& kernel = {});

}  // namespace spillway
