#pragma once

#include <cstddef>

#include "nets/network.h"

namespace spillway::nets {

/// Iandola et al., 2016, version 1.1, for images of 17x17 and more: fire modules squeeze the
/// channels by 1x1 convolutions and expand them by 1x1 and 3x3 ones side by side.
[[nodiscard]] Network squeezenet(const Shape& image, std::size_t classes);

}  // namespace spillway::nets
