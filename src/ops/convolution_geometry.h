#pragma once

#include "nets/layer.h"
#include "src/ops/operation.h"
#include "src/ops/tensor.h"

namespace spillway {

/// The geometry of the operations of `layer`, which makes `y` of `x`.
[[nodiscard]] ConvolutionGeometry geometry_of(const nets::Convolution& layer, const TensorShape& x,
                                              const TensorShape& y);
[[nodiscard]] TransposedConvolutionGeometry geometry_of(const nets::TransposedConvolution& layer,
                                                        const TensorShape& x, const TensorShape& y);

}  // namespace spillway
