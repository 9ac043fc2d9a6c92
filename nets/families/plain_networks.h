#pragma once

#include <cstddef>

#include "nets/network.h"

namespace spillway::nets {

/// AlexNet (Krizhevsky et al., 2012) in one tower, for images of 227x227 (67x67 and more). Each
/// convolution reads all channels of the previous one, as in SuperNeurons (section 4). The original
/// split the channels between two GPUs.
[[nodiscard]] Network alexnet(const Shape& image, std::size_t classes);

/// LeNet-5 with ReLU and max pooling (after LeCun et al., 1998), for images of 12x12 and more.
[[nodiscard]] Network lenet(const Shape& image, std::size_t classes);

/// OverFeat (Sermanet et al., 2013, arXiv:1312.6229), table 1, the fast model, for images of
/// 231x231 (71x71 and more). Has dropout on layers 6 and 7 (section 3.1). convnet-benchmarks has
/// the same table, without dropout.
[[nodiscard]] Network overfeat(const Shape& image, std::size_t classes);

/// SqueezeNet (Iandola et al., 2016), version 1.1, for images of 17x17 and more. Fire modules
/// squeeze the channels by 1x1 convolutions and expand them by parallel 1x1 and 3x3 convolutions.
[[nodiscard]] Network squeezenet(const Shape& image, std::size_t classes);

}  // namespace spillway::nets
