#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "nets/builder.h"

namespace spillway::nets {

/// Whether a window may stick out of its image.
enum class Border {
  kSame,  ///< zeros around, half a kernel: with stride 1 the image keeps its size
  kValid  ///< no: "V" in the figures of the Inception papers
};

/// Convolution without bias, batch norm and ReLU: what GoogLeNet and Inception are made of.
struct ConvolutionUnit {
  std::size_t channels;
  Extent kernel = square(1);
  std::size_t stride = 1;
  Border border = Border::kSame;
};

/// Units one after the other: name.1.conv, name.1.bn, name.1.relu, name.2.conv and so on.
NodeId add_units(Builder& net, NodeId x, const std::string& name,
                 const std::vector<ConvolutionUnit>& units);

}  // namespace spillway::nets
