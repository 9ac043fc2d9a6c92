#pragma once

#include <cstddef>

#include "nets/network.h"

namespace spillway::nets {

/// Szegedy et al., 2014, table 1, for images of 31x31 and more, without the auxiliary classifiers.
/// As trained today (torchvision): with batch norm instead of biases and of local response norm,
/// and with 3x3 convolutions where the paper has 5x5.
[[nodiscard]] Network googlenet(const Shape& image, std::size_t classes);
/// With the paper's two auxiliary heads, whose losses weigh 0.3 each.
[[nodiscard]] Network googlenet_with_heads(const Shape& image, std::size_t classes);

}  // namespace spillway::nets
