#pragma once

#include <array>
#include <cstddef>
#include <string>

#include "nets/network.h"

namespace spillway::nets {

/// 3x3 convolutions of each of the five stages.
using VggDepths = std::array<std::size_t, 5>;

/// Simonyan and Zisserman, 2014, for images of 32x32 and more.
/// Requires: at least one convolution a stage.
[[nodiscard]] Network vgg(std::string name, const VggDepths& depths, const Shape& image,
                          std::size_t classes);

/// Configurations A, B, D and E of the paper's table 1.
[[nodiscard]] Network vgg11(const Shape& image, std::size_t classes);
[[nodiscard]] Network vgg13(const Shape& image, std::size_t classes);
[[nodiscard]] Network vgg16(const Shape& image, std::size_t classes);
[[nodiscard]] Network vgg19(const Shape& image, std::size_t classes);

/// moDNN's VGG-101. The paper is silent on its stages; here 2, 22, 66, 4 and 4 convolutions, which
/// give the sizes of its figure 6.
[[nodiscard]] Network vgg101(const Shape& image, std::size_t classes);

}  // namespace spillway::nets
