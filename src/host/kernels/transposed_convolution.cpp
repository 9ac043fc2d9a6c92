#include <algorithm>
#include <array>
#include <string_view>

#include "src/host/kernels/kernels.h"
#include "src/host/kernels/transposed_loops.h"

namespace spillway::host {
namespace {

// Passes of the adjoint, the convolution that makes x of y: forward is its gradient of the data,
// backward its forward pass.

// The channels of y that lie side by side, once for each pixel of a strip.
struct Strips {
  Strips(const Machine& machine, const TensorShape& y)
      : batch{y.batch},
        lanes{machine.layout.lanes(y.image)},
        blocks{machine.layout.padded(y.image.channels) / lanes},
        pixels{y.image.height * y.image.width} {}

  [[nodiscard]] std::size_t begin(std::size_t image, std::size_t block) const {
    return (image * blocks + block) * pixels * lanes;
  }

  std::size_t batch;
  std::size_t lanes;
  std::size_t blocks;
  std::size_t pixels;
};

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

// Of each channel of dy. Each sum by one thread, in order.
template <class T>
void sum_channels(const Strips& strips, const T* dy, float* sums) {
  constexpr std::size_t kMaxLanes = 16;
#pragma omp parallel for schedule(static)
  for (std::size_t block = 0; block < strips.blocks; ++block) {
    std::array<double, kMaxLanes> partial{};
    for (std::size_t n = 0; n < strips.batch; ++n) {
      const T* const strip = dy + strips.begin(n, block);
      for (std::size_t pixel = 0; pixel < strips.pixels; ++pixel) {
        for (std::size_t lane = 0; lane < strips.lanes; ++lane) {
          partial[lane] += static_cast<double>(float{strip[pixel * strips.lanes + lane]});
        }
      }
    }
    std::transform(partial.begin(), partial.begin() + static_cast<std::ptrdiff_t>(strips.lanes),
                   sums + block * strips.lanes, [](double sum) { return static_cast<float>(sum); });
  }
}

// Whether oneDNN has nothing better than its reference implementation, and our loops would do.
bool takes_loops(const TransposedConvolutionGeometry& geometry, const WeightedPrimitive& weighted) {
  const std::string_view name{weighted.primitive.impl_info_str()};
  return geometry.groups == 1 && name.starts_with("ref");
}

template <class Op>
um::Bytes workspace(const Machine& machine, const Op& op, const WeightedPrimitive& weighted) {
  return takes_loops(op.geometry, weighted) ? loops_workspace(op.geometry)
                                            : workspace_of(machine, weighted);
}

}  // namespace

std::optional<WeightedPrimitive> make_primitive(const Machine& machine,
                                                const TransposedConvolutionForward& operation,
                                                dnnl::algorithm algorithm) {
  return make_primitive(machine, ConvolutionBackwardData{.geometry = operation.geometry.adjoint()},
                        algorithm);
}
std::optional<WeightedPrimitive> make_primitive(const Machine& machine,
                                                const TransposedConvolutionBackwardData& operation,
                                                dnnl::algorithm algorithm) {
  return make_primitive(machine, ConvolutionForward{.geometry = operation.geometry.adjoint()},
                        algorithm);
}
std::optional<WeightedPrimitive> make_primitive(
    const Machine& machine, const TransposedConvolutionBackwardWeights& operation,
    dnnl::algorithm algorithm) {
  return make_primitive(
      machine, ConvolutionBackwardWeights{.geometry = operation.geometry.adjoint()}, algorithm);
}

std::unique_ptr<Kernel> make_kernel(const Machine& machine,
                                    const TransposedConvolutionForward& operation,
                                    const WeightedPrimitive& weighted) {
  const TransposedConvolutionGeometry& g = operation.geometry;
  if (takes_loops(g, weighted)) return make_loops(machine, operation);
  // shared: kernels are copied
  const std::shared_ptr<Kernel> own = make_kernel(machine, weighted);
  return element_kernel_of(
      machine, operation,
      [parts = parts_of(machine.layout, g.parameters()), strips = Strips{machine, g.y},
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
                                    const TransposedConvolutionBackwardData& /*operation*/,
                                    const WeightedPrimitive& weighted) {
  return make_kernel(machine, weighted);
}
// The adjoint reads y where x is meant, and the other way round.
std::unique_ptr<Kernel> make_kernel(const Machine& machine,
                                    const TransposedConvolutionBackwardWeights& operation,
                                    const WeightedPrimitive& weighted) {
  const TransposedConvolutionGeometry& g = operation.geometry;
  if (takes_loops(g, weighted)) return make_loops(machine, operation);
  // shared: kernels are copied
  const std::shared_ptr<Kernel> own = make_kernel(machine, weighted);
  return element_kernel_of(
      machine, operation,
      [parts = parts_of(machine.layout, g.parameters()), strips = Strips{machine, g.y},
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
  return workspace(machine, operation, weighted);
}
um::Bytes workspace_of(const Machine& machine,
                       const TransposedConvolutionBackwardData& /*operation*/,
                       const WeightedPrimitive& weighted) {
  return workspace_of(machine, weighted);
}
um::Bytes workspace_of(const Machine& machine,
                       const TransposedConvolutionBackwardWeights& operation,
                       const WeightedPrimitive& weighted) {
  return workspace(machine, operation, weighted);
}

}  // namespace spillway::host
