#pragma once

#include <cstddef>

#include "nets/network.h"

namespace spillway::nets {

/// LeNet-5 with ReLU and max pooling (after LeCun et al., 1998), for images of 12x12 and more.
[[nodiscard]] Network lenet(const Shape& image, std::size_t classes);

}  // namespace spillway::nets
