#pragma once

#include <cstddef>

#include "nets/network.h"

namespace spillway::nets {

/// Huang et al., 2016, table 1, with bottlenecks and compression (DenseNet-BC), for images of any
/// size from 29x29 on: each layer reads what all layers of its block before it made.
[[nodiscard]] Network densenet121(const Shape& image, std::size_t classes);
[[nodiscard]] Network densenet161(const Shape& image, std::size_t classes);
[[nodiscard]] Network densenet169(const Shape& image, std::size_t classes);
[[nodiscard]] Network densenet201(const Shape& image, std::size_t classes);

}  // namespace spillway::nets
