#pragma once

#include <array>
#include <cstddef>
#include <string>

#include "nets/network.h"

namespace spillway::nets {

/// 3x3 convolutions per stage, for five stages.
using VggDepths = std::array<std::size_t, 5>;

/// VGG (Simonyan and Zisserman, 2014), for images of 32x32 and more. Requires: at least one
/// convolution per stage.
[[nodiscard]] Network vgg(std::string name, const VggDepths& depths, const Shape& image,
                          std::size_t classes);

/// Configurations A, B, D and E of the paper's table 1.
[[nodiscard]] Network vgg11(const Shape& image, std::size_t classes);
[[nodiscard]] Network vgg13(const Shape& image, std::size_t classes);
[[nodiscard]] Network vgg16(const Shape& image, std::size_t classes);
[[nodiscard]] Network vgg19(const Shape& image, std::size_t classes);

/// moDNN's VGG-101. The paper does not give its stages; 2, 22, 66, 4 and 4 convolutions reproduce
/// the sizes in its figure 6.
[[nodiscard]] Network vgg101(const Shape& image, std::size_t classes);

}  // namespace spillway::nets
