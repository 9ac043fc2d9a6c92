#pragma once

#include <cstddef>

#include "nets/network.h"

namespace spillway::nets {

/// Szegedy et al., 2015 ("Rethinking the Inception architecture"), table 1 as it was published with
/// weights, for images of 299x299 (75x75 and more), without the auxiliary classifier.
[[nodiscard]] Network inception_v3(const Shape& image, std::size_t classes);
/// With the auxiliary head of its paper's figure 8, whose loss weighs 0.4 (the paper is silent on
/// the weight; this is the published model's).
[[nodiscard]] Network inception_v3_with_head(const Shape& image, std::size_t classes);

/// Szegedy et al., 2016 ("Inception-v4, Inception-ResNet and the impact of residual connections"),
/// figures 3 to 9, for images of 299x299 (75x75 and more).
[[nodiscard]] Network inception_v4(const Shape& image, std::size_t classes);

/// Szegedy et al., 2014, table 1, for images of 31x31 and more, without the auxiliary classifiers.
/// As trained today (torchvision): with batch norm instead of biases and of local response norm,
/// and with 3x3 convolutions where the paper has 5x5.
[[nodiscard]] Network googlenet(const Shape& image, std::size_t classes);
/// With the paper's two auxiliary heads, whose losses weigh 0.3 each.
[[nodiscard]] Network googlenet_with_heads(const Shape& image, std::size_t classes);

}  // namespace spillway::nets
