#pragma once

#include <array>
#include <cstddef>
#include <string>

#include "nets/network.h"

namespace spillway::nets {

/// Blocks per stage, for four stages.
using ResnetDepths = std::array<std::size_t, 4>;

/// ResNet with basic blocks of two 3x3 convolutions (He et al., 2015, table 1), for images of any
/// size.
[[nodiscard]] Network resnet18(const Shape& image, std::size_t classes);
[[nodiscard]] Network resnet34(const Shape& image, std::size_t classes);

/// ResNet with bottlenecks of 1x1, 3x3 and 1x1 convolutions, with the stride on the 3x3 ("v1.5").
/// SuperNeurons uses depths of 6, 32, n and 6 (table 4). Requires: at least one block per stage.
[[nodiscard]] Network bottleneck_resnet(std::string name, const ResnetDepths& depths,
                                        const Shape& image, std::size_t classes);
[[nodiscard]] Network resnet50(const Shape& image, std::size_t classes);
[[nodiscard]] Network resnet101(const Shape& image, std::size_t classes);
[[nodiscard]] Network resnet152(const Shape& image, std::size_t classes);

}  // namespace spillway::nets
