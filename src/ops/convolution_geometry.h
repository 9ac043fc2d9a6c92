#pragma once

#include <concepts>
#include <type_traits>

#include "nets/layer.h"
#include "src/ops/tensor.h"
#include "src/ops/weighted_operations.h"

namespace spillway {

/// The geometry of the operations of a convolution or a transposed one, which makes `y` of `x`.
template <class Layer>
[[nodiscard]] auto geometry_of(const Layer& layer, const TensorShape& x, const TensorShape& y) {
  using Geometry = std::conditional_t<std::same_as<Layer, nets::Convolution>, ConvolutionGeometry,
                                      TransposedConvolutionGeometry>;
  return Geometry{.x = x,
                  .y = y,
                  .kernel = layer.kernel,
                  .stride = layer.stride,
                  .padding = layer.padding,
                  .bias = layer.bias,
                  .dilation = layer.dilation,
                  .groups = layer.groups};
}

}  // namespace spillway
