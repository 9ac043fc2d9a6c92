#include <algorithm>
#include <array>

#include "src/host/kernels/channel_strips.h"
#include "src/host/kernels/depthwise_loops.h"
#include "src/host/kernels/kernels.h"
#include "src/host/kernels/window_products.h"

namespace spillway::host {
namespace {

// oneDNN chooses the weights' format: a forced one may select its reference implementation. The
// weights have the elements' type; their gradient is float. Padding channels belong to no group, so
// with groups oneDNN sees them as padding.
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

// Transposed convolutions run passes of the adjoint, the convolution from y to x. Their forward
// pass is its backward-data pass, their backward-data pass its forward pass.

// y = y + bias; with kRelu, then max(0, y).
template <bool kRelu, class T>
void finish(const Strips& strips, const float* bias, T* y) {
#pragma omp parallel for collapse(2) schedule(static)
  for (std::size_t n = 0; n < strips.batch; ++n) {
    for (std::size_t block = 0; block < strips.blocks; ++block) {
      T* const strip = y + strips.begin(n, block);
      for (std::size_t pixel = 0; pixel < strips.pixels; ++pixel) {
        for (std::size_t lane = 0; lane < strips.lanes; ++lane) {
          T& place = strip[pixel * strips.lanes + lane];
          float value = place;
          if (bias != nullptr) value += bias[block * strips.lanes + lane];
          place = kRelu && value < 0.F ? 0.F : value;
        }
      }
    }
  }
}

// Returns the adjoint's equivalent operation, without bias and ReLU.
ConvolutionBackwardData adjoint_of(const TransposedConvolutionForward& op) {
  return {.geometry = op.geometry.adjoint()};
}
ConvolutionForward adjoint_of(const TransposedConvolutionBackwardData& op) {
  return {.geometry = op.geometry.adjoint()};
}
ConvolutionBackwardWeights adjoint_of(const TransposedConvolutionBackwardWeights& op) {
  return {.geometry = op.geometry.adjoint()};
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

std::optional<WeightedPrimitive> make_primitive(const Machine& machine,
                                                const TransposedConvolutionForward& operation,
                                                dnnl::algorithm algorithm) {
  return make_primitive(machine, adjoint_of(operation), algorithm);
}
std::optional<WeightedPrimitive> make_primitive(const Machine& machine,
                                                const TransposedConvolutionBackwardData& operation,
                                                dnnl::algorithm algorithm) {
  return make_primitive(machine, adjoint_of(operation), algorithm);
}
std::optional<WeightedPrimitive> make_primitive(
    const Machine& machine, const TransposedConvolutionBackwardWeights& operation,
    dnnl::algorithm algorithm) {
  return make_primitive(machine, adjoint_of(operation), algorithm);
}

std::unique_ptr<Kernel> make_kernel(const Machine& machine,
                                    const TransposedConvolutionForward& operation,
                                    const WeightedPrimitive& weighted) {
  const TransposedConvolutionGeometry& g = operation.geometry;
  // shared: kernels are copied
  const std::shared_ptr<Kernel> own = make_kernel(machine, adjoint_of(operation), weighted);
  return element_kernel_of(
      machine, operation,
      [parts = parts_of(machine.layout, g.parameters()), strips = Strips{machine.layout, g.y},
       relu = operation.relu,
       adjoint = own](auto elements, const auto& operands, const auto& arguments) {
        using T = typename decltype(elements)::Type;
        adjoint->run(arguments);
        if (parts.second == 0 && !relu) return;
        const float* const bias =
            parts.second == 0 ? nullptr : floats(operands.in.parameters) + parts.second_begin;
        (relu ? finish<true, T> : finish<false, T>)(strips, bias, elements(operands.out.y));
      });
}
std::unique_ptr<Kernel> make_kernel(const Machine& machine,
                                    const TransposedConvolutionBackwardData& operation,
                                    const WeightedPrimitive& weighted) {
  return make_kernel(machine, adjoint_of(operation), weighted);
}
// In the adjoint, x and y are swapped.
std::unique_ptr<Kernel> make_kernel(const Machine& machine,
                                    const TransposedConvolutionBackwardWeights& operation,
                                    const WeightedPrimitive& weighted) {
  const TransposedConvolutionGeometry& g = operation.geometry;
  // shared: kernels are copied
  const std::shared_ptr<Kernel> own = make_kernel(machine, adjoint_of(operation), weighted);
  return element_kernel_of(
      machine, operation,
      [parts = parts_of(machine.layout, g.parameters()), strips = Strips{machine.layout, g.y},
       adjoint = own](auto elements, const auto& operands, const auto& arguments) {
        const std::array<std::byte*, 3> swapped{operands.in.dy, operands.in.x,
                                                operands.out.dparameters};
        KernelArguments of_adjoint = arguments;
        of_adjoint.operands = swapped;
        adjoint->run(of_adjoint);
        float* const gradient = floats(operands.out.dparameters);
        zero_gaps(parts, gradient);
        if (parts.second > 0) {
          sum_channels(strips, elements(operands.in.dy), gradient + parts.second_begin);
        }
      });
}

um::Bytes workspace_of(const Machine& machine, const TransposedConvolutionForward& operation,
                       const WeightedPrimitive& weighted) {
  return workspace_of(machine, adjoint_of(operation), weighted);
}
um::Bytes workspace_of(const Machine& machine, const TransposedConvolutionBackwardData& operation,
                       const WeightedPrimitive& weighted) {
  return workspace_of(machine, adjoint_of(operation), weighted);
}
um::Bytes workspace_of(const Machine& machine,
                       const TransposedConvolutionBackwardWeights& operation,
                       const WeightedPrimitive& weighted) {
  return workspace_of(machine, adjoint_of(operation), weighted);
}

}  // namespace spillway::host
