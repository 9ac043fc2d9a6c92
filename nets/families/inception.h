#pragma once

#include <cstddef>

#include "nets/network.h"

namespace spillway::nets {

/// Inception v3 (Szegedy et al., 2015, "Rethinking the Inception architecture"), table 1 as
/// published with weights, for images of 299x299 (75x75 and more), without the auxiliary
/// classifier.
[[nodiscard]] Network inception_v3(const Shape& image, std::size_t classes);
/// Inception v3 with the auxiliary head of the paper's figure 8. Its loss has the published model's
/// weight of 0.4, since the paper gives none.
[[nodiscard]] Network inception_v3_with_head(const Shape& image, std::size_t classes);

/// Inception v4 (Szegedy et al., 2016, "Inception-v4, Inception-ResNet and the impact of residual
/// connections"), figures 3 to 9, for images of 299x299 (75x75 and more).
[[nodiscard]] Network inception_v4(const Shape& image, std::size_t classes);

/// GoogLeNet (Szegedy et al., 2014), table 1, for images of 31x31 and more, without the auxiliary
/// classifiers. Follows torchvision: batch norm replaces biases and local response norm, and 3x3
/// convolutions replace the paper's 5x5.
[[nodiscard]] Network googlenet(const Shape& image, std::size_t classes);
/// GoogLeNet with the paper's two auxiliary heads; each loss has weight 0.3.
[[nodiscard]] Network googlenet_with_heads(const Shape& image, std::size_t classes);

}  // namespace spillway::nets
