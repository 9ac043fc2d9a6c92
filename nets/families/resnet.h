#pragma once

#include <array>
#include <cstddef>
#include <string>

#include "nets/network.h"

namespace spillway::nets {

/// Blocks in each of the four stages.
using ResnetDepths = std::array<std::size_t, 4>;

/// He et al., 2015, table 1, for images of any size: basic blocks of two 3x3 convolutions.
[[nodiscard]] Network resnet18(const Shape& image, std::size_t classes);
[[nodiscard]] Network resnet34(const Shape& image, std::size_t classes);

/// Bottlenecks of 1x1, 3x3 and 1x1, with the stride on the 3x3 ("v1.5"). SuperNeurons goes deep
/// with 6, 32, n and 6 of them (table 4).
/// Requires: at least one block a stage.
[[nodiscard]] Network bottleneck_resnet(std::string name, const ResnetDepths& depths,
                                        const Shape& image, std::size_t classes);
[[nodiscard]] Network resnet50(const Shape& image, std::size_t classes);
[[nodiscard]] Network resnet101(const Shape& image, std::size_t classes);
[[nodiscard]] Network resnet152(const Shape& image, std::size_t classes);

}  // namespace spillway::nets
