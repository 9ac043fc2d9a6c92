#pragma once

#include <cstddef>

#include "nets/network.h"

namespace spillway::nets {

/// DenseNet-BC (Huang et al., 2016, table 1), with bottlenecks and compression, for images of 29x29
/// and more. Each layer reads the outputs of all earlier layers of its block.
[[nodiscard]] Network densenet121(const Shape& image, std::size_t classes);
[[nodiscard]] Network densenet161(const Shape& image, std::size_t classes);
[[nodiscard]] Network densenet169(const Shape& image, std::size_t classes);
[[nodiscard]] Network densenet201(const Shape& image, std::size_t classes);

}  // namespace spillway::nets
