#include "src/ops/convolution_geometry.h"

namespace spillway {
namespace {

template <class Geometry, class Layer>
Geometry make_geometry(const Layer& layer, const TensorShape& x, const TensorShape& y) {
  return {.x = x,
          .y = y,
          .kernel = layer.kernel,
          .stride = layer.stride,
          .padding = layer.padding,
          .bias = layer.bias,
          .dilation = layer.dilation,
          .groups = layer.groups};
}

}  // namespace

ConvolutionGeometry geometry_of(const nets::Convolution& layer, const TensorShape& x,
                                const TensorShape& y) {
  return make_geometry<ConvolutionGeometry>(layer, x, y);
}

TransposedConvolutionGeometry geometry_of(const nets::TransposedConvolution& layer,
                                          const TensorShape& x, const TensorShape& y) {
  return make_geometry<TransposedConvolutionGeometry>(layer, x, y);
}

}  // namespace spillway
