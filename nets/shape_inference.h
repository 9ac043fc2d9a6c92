#pragma once

#include <string>
#include <vector>

#include "nets/layer.h"
#include "nets/shape.h"

namespace spillway::nets {

/// Returns the output shape of `layer`. `name` is used in messages only. Requires: as many inputs
/// as the layer reads (layer_kinds.h). Throws: um::Error that names the layer and the shapes when
/// the layer does not fit its inputs.
[[nodiscard]] Shape infer_shape(const std::string& name, const Layer& layer,
                                const std::vector<Shape>& inputs);

}  // namespace spillway::nets
