#pragma once

#include <cstddef>

#include "nets/network.h"

namespace spillway::nets {

/// Krizhevsky et al., 2012, in one tower, for images of 227x227 (67x67 and more): each convolution
/// reads all channels of the one before, as SuperNeurons trains it (section 4), without the halves
/// that the first AlexNet kept on two GPUs.
[[nodiscard]] Network alexnet(const Shape& image, std::size_t classes);

}  // namespace spillway::nets
