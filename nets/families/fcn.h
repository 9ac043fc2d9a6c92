#pragma once

#include <array>
#include <cstddef>
#include <string>

#include "nets/network.h"

namespace spillway::nets {

/// Channels of VGG-16's five stages, and of the two convolutions that replace its linear layers.
struct FcnWidths {
  std::array<std::size_t, 5> stages{64, 128, 256, 512, 512};
  std::size_t hidden = 4096;
};

/// The stride of the scores that are upsampled to the image last.
enum class FcnStride { k32, k8 };

/// Fully convolutional network of VGG-16 (Long et al., 2015): one score per class and pixel, for
/// images of any size. Paddings and crops follow the published networks, since the paper does not
/// give them. The first convolution pads by 100, so that the 7x7 kernel fits in the smallest image.
/// Pooling rounds up. Crops begin at fixed offsets (19, or 5, 9 and 31), which align each score
/// with its pixel. Transposed convolutions are initialised by bilinear interpolation and all
/// trained; the paper keeps the last one fixed.
[[nodiscard]] Network fcn(std::string name, FcnStride stride, const FcnWidths& widths,
                          const Shape& image, std::size_t classes);

/// Upsamples scores at a 32nd of the image's size directly to the image.
[[nodiscard]] Network fcn32s(const Shape& image, std::size_t classes);
/// Adds scores of pool4 and pool3 while upsampling; the last step is by 8.
[[nodiscard]] Network fcn8s(const Shape& image, std::size_t classes);

}  // namespace spillway::nets
