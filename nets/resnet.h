#pragma once

#include <cstddef>

#include "nets/network.h"

namespace spillway::nets {

/// He et al., 2015, for images of any size: basic blocks of two 3x3 convolutions.
[[nodiscard]] Network resnet18(const Shape& image, std::size_t classes);

/// Bottlenecks of 1x1, 3x3 and 1x1, with the stride on the 3x3 ("v1.5").
[[nodiscard]] Network resnet50(const Shape& image, std::size_t classes);

}  // namespace spillway::nets
