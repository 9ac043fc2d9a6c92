#include <algorithm>
#include <array>

#include "src/host/kernels/channel_strips.h"
#include "src/host/kernels/kernels.h"

namespace spillway::host {
namespace {

// Passes of the adjoint, the convolution that makes x of y: forward is its gradient of the data,
// backward its forward pass.

// y = y + bias, then with kRelu max(0, y).
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

// The operation of the adjoint that does the same, but for bias and ReLU.
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
// The adjoint reads y where x is meant, and the other way round.
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
