#include "src/host/kernels/depthwise_loops.h"
#include "src/host/kernels/kernels.h"
#include "src/host/kernels/window_products.h"

namespace spillway::host {
namespace {

// The weights' format is oneDNN's choice: forcing one can end in its reference implementation.
// They have the type of the elements, their gradient is float.
// Padding channels belong to no group, so with groups oneDNN is told of them as of padding.
ConvolutionDescs describe(const Layout& layout, const ConvolutionGeometry& geometry,
                          dnnl::algorithm algorithm, dnnl::memory::data_type weights) {
  const bool is_grouped = geometry.groups > 1;
  const auto desc = [&](const TensorShape& shape) {
    return is_grouped ? layout.unpadded_desc(shape) : layout.desc(shape);
  };
  return {.algorithm = algorithm,
          .x = desc(geometry.x),
          .weights = any_format(weights_desc(layout, geometry.parameters()), weights),
          .bias = bias_desc(layout, geometry.parameters()),
          .y = desc(geometry.y),
          .strides = dims({geometry.stride.height, geometry.stride.width}),
          .gaps = dims({geometry.dilation.height - 1, geometry.dilation.width - 1}),
          .padding = dims({geometry.padding.height, geometry.padding.width})};
}

std::optional<WeightedPrimitive> weighted(const Layout& layout, const ConvolutionGeometry& geometry,
                                          Direction direction,
                                          const dnnl::primitive_desc& primitive) {
  if (!primitive) return std::nullopt;
  return WeightedPrimitive{.primitive = primitive,
                           .direction = direction,
                           .block_weights = weights_desc(layout, geometry.parameters()),
                           .parts = parts_of(layout, geometry.parameters())};
}

template <class Op>
std::unique_ptr<Kernel> make(const Machine& machine, const Op& op,
                             const WeightedPrimitive& weighted) {
  if (!is_reference(weighted)) return make_kernel(machine, weighted);
  if (is_depthwise(machine.layout, op.geometry)) return make_depthwise(machine, op);
  return make_products(machine, op, weighted);
}

um::Bytes workspace(const Machine& machine, const ConvolutionGeometry& geometry,
                    const WeightedPrimitive& weighted) {
  if (!is_reference(weighted)) return workspace_of(machine, weighted);
  if (is_depthwise(machine.layout, geometry)) return depthwise_workspace(machine, geometry);
  return products_workspace(machine, geometry, weighted);
}

}  // namespace

std::optional<WeightedPrimitive> make_primitive(const Machine& machine,
                                                const ConvolutionForward& operation,
                                                dnnl::algorithm algorithm) {
  const ConvolutionDescs descs =
      describe(machine.layout, operation.geometry, algorithm, machine.layout.element_type());
  return weighted(machine.layout, operation.geometry, Direction::kForward,
                  convolution_forward(machine.engine, descs, operation.relu));
}

std::optional<WeightedPrimitive> make_primitive(const Machine& machine,
                                                const ConvolutionBackwardData& operation,
                                                dnnl::algorithm algorithm) {
  const ConvolutionDescs descs =
      describe(machine.layout, operation.geometry, algorithm, machine.layout.element_type());
  const auto forward = convolution_forward(machine.engine, descs, /*relu=*/false);
  if (!forward) return std::nullopt;
  return weighted(machine.layout, operation.geometry, Direction::kBackwardData,
                  convolution_backward_data(machine.engine, descs, forward));
}

std::optional<WeightedPrimitive> make_primitive(const Machine& machine,
                                                const ConvolutionBackwardWeights& operation,
                                                dnnl::algorithm algorithm) {
  const ConvolutionDescs descs =
      describe(machine.layout, operation.geometry, algorithm, machine.layout.element_type());
  const auto forward = convolution_forward(machine.engine, descs, /*relu=*/false);
  if (!forward) return std::nullopt;
  const ConvolutionDescs gradients =
      describe(machine.layout, operation.geometry, algorithm, dnnl::memory::data_type::f32);
  return weighted(machine.layout, operation.geometry, Direction::kBackwardWeights,
                  convolution_backward_weights(machine.engine, gradients, forward));
}

std::unique_ptr<Kernel> make_kernel(const Machine& machine, const ConvolutionForward& operation,
                                    const WeightedPrimitive& weighted) {
  return make(machine, operation, weighted);
}
std::unique_ptr<Kernel> make_kernel(const Machine& machine,
                                    const ConvolutionBackwardData& operation,
                                    const WeightedPrimitive& weighted) {
  return make(machine, operation, weighted);
}
std::unique_ptr<Kernel> make_kernel(const Machine& machine,
                                    const ConvolutionBackwardWeights& operation,
                                    const WeightedPrimitive& weighted) {
  return make(machine, operation, weighted);
}

um::Bytes workspace_of(const Machine& machine, const ConvolutionForward& operation,
                       const WeightedPrimitive& weighted) {
  return workspace(machine, operation.geometry, weighted);
}
um::Bytes workspace_of(const Machine& machine, const ConvolutionBackwardData& operation,
                       const WeightedPrimitive& weighted) {
  return workspace(machine, operation.geometry, weighted);
}
um::Bytes workspace_of(const Machine& machine, const ConvolutionBackwardWeights& operation,
                       const WeightedPrimitive& weighted) {
  return workspace(machine, operation.geometry, weighted);
}

}  // namespace spillway::host
