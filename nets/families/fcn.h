#pragma once

#include <array>
#include <cstddef>
#include <string>

#include "nets/network.h"

namespace spillway::nets {

/// Channels of VGG-16's five stages, and of the two convolutions that stand for its linear layers.
struct FcnWidths {
  std::array<std::size_t, 5> stages{64, 128, 256, 512, 512};
  std::size_t hidden = 4096;
};

/// How coarse the scores are that are upsampled to the image.
enum class FcnStride { k32, k8 };

/// Fully convolutional network of VGG-16 (Long et al., 2015): a score for each class and pixel, of
/// images of any size. Paddings and crops are those of the published networks, of which the paper
/// is silent: the first convolution pads by 100, so that the 7x7 one finds a window in the smallest
/// image; pooling rounds up; crops begin at fixed offsets (19, or 5, 9 and 31), which put each
/// score over its pixel. Kernels of transposed convolutions begin as bilinear interpolation and are
/// all learnt; the paper keeps the last one as it is.
[[nodiscard]] Network fcn(std::string name, FcnStride stride, const FcnWidths& widths,
                          const Shape& image, std::size_t classes);

/// The whole image from scores of a 32nd of its size.
[[nodiscard]] Network fcn32s(const Shape& image, std::size_t classes);
/// Scores of pool4 and pool3 are added on the way up, and the last step is by 8.
[[nodiscard]] Network fcn8s(const Shape& image, std::size_t classes);

}  // namespace spillway::nets
