#pragma once

#include <cstddef>

#include "nets/network.h"

namespace spillway::nets {

/// Configurations D and E of Simonyan and Zisserman, 2014, for images of 32x32 and more.
[[nodiscard]] Network vgg16(const Shape& image, std::size_t classes);
[[nodiscard]] Network vgg19(const Shape& image, std::size_t classes);

}  // namespace spillway::nets
