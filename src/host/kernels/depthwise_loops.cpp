#include "src/host/kernels/depthwise_loops.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <span>
#include <utility>
#include <vector>

#include "src/host/kernels/channel_strips.h"
#include "src/host/kernels/kernels.h"
#include "src/host/kernels/window_products.h"
#include "src/host/layout/parameter_layout.h"
#include "src/host/layout/threads.h"
#include "um/machine/wide.h"

namespace spillway::host {
namespace {

// Adds to `count` pixels of `sums` the products of every `step`-th pixel of `from` with the weights
// of its channels.
template <std::size_t kLanes, class T>
SPILLWAY_WIDE void add_products(const float* weights, const T* from, std::size_t step,
                                std::size_t count, float* sums) {
  for (std::size_t i = 0; i < count; ++i) {
    const T* const pixel = from + i * step * kLanes;
#pragma omp simd
    for (std::size_t lane = 0; lane < kLanes; ++lane) {
      sums[i * kLanes + lane] += weights[lane] * pixel[lane];
    }
  }
}

// Adds to `sums` the products of `count` pixels of dy with every `step`-th pixel of x.
template <std::size_t kLanes, class T>
SPILLWAY_WIDE void add_slopes(const T* x, std::size_t step, const T* dy, std::size_t count,
                              float* sums) {
  std::array<float, kLanes> of_row{};
  for (std::size_t i = 0; i < count; ++i) {
    const T* const pixel = x + i * step * kLanes;
    const T* const slope = dy + i * kLanes;
#pragma omp simd
    for (std::size_t lane = 0; lane < kLanes; ++lane) of_row[lane] += slope[lane] * pixel[lane];
  }
  for (std::size_t lane = 0; lane < kLanes; ++lane) sums[lane] += of_row[lane];
}

// Pixels of a phase's row that have the tap inside the source tensor.
struct Inside {
  std::size_t begin;
  std::size_t end;
};

Inside inside(const WindowPhase& phase, const WindowTap& tap, std::size_t width) {
  const auto step = static_cast<std::ptrdiff_t>(phase.source_step.width);
  const auto last = static_cast<std::ptrdiff_t>(width) - 1 - tap.column;
  const std::ptrdiff_t begin = tap.column < 0 ? (-tap.column + step - 1) / step : 0;
  const std::ptrdiff_t end =
      last < 0 ? 0 : std::min(last / step + 1, static_cast<std::ptrdiff_t>(phase.count.width));
  return {.begin = static_cast<std::size_t>(begin),
          .end = static_cast<std::size_t>(std::max(begin, end))};
}

// The rows of a tensor's channel blocks.
struct Rows {
  Rows(const Layout& layout, const TensorShape& shape)
      : strips{layout, shape}, height{shape.image.height}, width{shape.image.width} {}

  [[nodiscard]] bool has(std::ptrdiff_t row) const {
    return row >= 0 && static_cast<std::size_t>(row) < height;
  }
  [[nodiscard]] std::size_t place(std::size_t image, std::size_t block, std::size_t row,
                                  std::size_t column) const {
    return strips.begin(image, block) + (row * width + column) * strips.lanes;
  }

  Strips strips;
  std::size_t height;
  std::size_t width;
};

// The weights in the order (block, tap, channel of the block), with zeros for padding channels.
class LaneWeights {
 public:
  LaneWeights(const Layout& layout, const ConvolutionGeometry& g)
      : channels_{g.x.image.channels},
        taps_{g.kernel.height * g.kernel.width},
        lanes_{layout.lanes(g.x.image)},
        blocks_{layout.padded(channels_) / lanes_} {}

  [[nodiscard]] std::size_t count() const { return blocks_ * taps_ * lanes_; }
  [[nodiscard]] std::size_t place(std::size_t block, std::size_t tap) const {
    return (block * taps_ + tap) * lanes_;
  }
  // Convert from and to a block of parameters.
  void read(const float* parameters, float* weights) const {
    std::fill_n(weights, count(), 0.F);
    for_each([&](std::size_t stored, std::size_t lane) { weights[lane] = parameters[stored]; });
  }
  void write(const float* weights, float* parameters) const {
    for_each([&](std::size_t stored, std::size_t lane) { parameters[stored] = weights[lane]; });
  }

 private:
  template <class Visit>
  void for_each(const Visit& visit) const {
    for (std::size_t c = 0; c < channels_; ++c) {
      for (std::size_t tap = 0; tap < taps_; ++tap) {
        visit(c * taps_ + tap, place(c / lanes_, tap) + c % lanes_);
      }
    }
  }

  std::size_t channels_;
  std::size_t taps_;
  std::size_t lanes_;
  std::size_t blocks_;
};

// Calls `use` with the number of lanes as a compile-time constant.
template <class Use>
void with_lanes(std::size_t lanes, const Use& use) {
  if (lanes == 16) return use(std::integral_constant<std::size_t, 16>{});
  use(std::integral_constant<std::size_t, 8>{});
}

// Computes y from x, or dx from dy. One thread computes each pixel, its taps in order.
class PixelLoops final : public HostKernel {
 public:
  PixelLoops(const Machine& machine, const ConvolutionGeometry& g, const TensorShape& from,
             const TensorShape& to, std::vector<WindowPhase> phases, bool has_bias, bool relu)
      : HostKernel{machine, 3},
        layout_{machine.layout},
        weights_{machine.layout, g},
        from_{machine.layout, from},
        to_{machine.layout, to},
        phases_{std::move(phases)},
        bias_{has_bias ? parts_of(machine.layout, g.parameters()).second_begin : 0},
        relu_{relu} {}

 private:
  void compute(const KernelArguments& arguments) override {
    const auto operands = operands_of<LinearForward>(arguments.operands);
    const float* const block = floats(operands.in.parameters);
    float* const weights = floats(arguments.workspace);
    weights_.read(block, weights);
    const float* const bias = bias_ == 0 ? nullptr : block + bias_;
    ThreadFloats all_sums{to_.width * to_.strips.lanes};
    with_elements(layout_, [&](auto elements) {
      with_lanes(to_.strips.lanes, [&](auto lanes) {
        const auto* const from = elements(operands.in.x);
        auto* const to = elements(operands.out.y);
#pragma omp parallel
        {
          const std::span<float> sums = all_sums.mine();
#pragma omp for collapse(2) schedule(static)
          for (std::size_t n = 0; n < to_.strips.batch; ++n) {
            for (std::size_t b = 0; b < to_.strips.blocks; ++b) {
              make_strip<decltype(lanes)::value>(n, b, from, weights, bias, sums.data(), to);
            }
          }
        }
      });
    });
  }

  template <std::size_t kLanes, class T>
  void make_strip(std::size_t n, std::size_t block, const T* from, const float* weights,
                  const float* bias, float* sums, T* to) const {
    for (const WindowPhase& phase : phases_) {
      for (std::size_t i = 0; i < phase.count.height; ++i) {
        for (std::size_t k = 0; k < phase.count.width * kLanes; ++k) {
          sums[k] = bias == nullptr ? 0.F : bias[block * kLanes + k % kLanes];
        }
        add_taps<kLanes>(phase, i, n, block, from, weights, sums);
        const std::size_t row = phase.first.height + i * phase.step.height;
        T* pixel = to + to_.place(n, block, row, phase.first.width);
        for (std::size_t k = 0; k < phase.count.width; ++k, pixel += phase.step.width * kLanes) {
          for (std::size_t lane = 0; lane < kLanes; ++lane) {
            const float sum = sums[k * kLanes + lane];
            pixel[lane] = relu_ && sum < 0.F ? 0.F : sum;
          }
        }
      }
    }
  }

  template <std::size_t kLanes, class T>
  void add_taps(const WindowPhase& phase, std::size_t row, std::size_t n, std::size_t block,
                const T* from, const float* weights, float* sums) const {
    for (const WindowTap& tap : phase.taps) {
      const auto source = static_cast<std::ptrdiff_t>(row * phase.source_step.height) + tap.row;
      const auto [begin, end] = inside(phase, tap, from_.width);
      if (!from_.has(source) || begin == end) continue;
      const auto column = static_cast<std::ptrdiff_t>(begin * phase.source_step.width) + tap.column;
      add_products<kLanes>(weights + weights_.place(block, tap.number),
                           from + from_.place(n, block, static_cast<std::size_t>(source),
                                              static_cast<std::size_t>(column)),
                           phase.source_step.width, end - begin, sums + begin * kLanes);
    }
  }

  Layout layout_;
  LaneWeights weights_;
  Rows from_;
  Rows to_;
  std::vector<WindowPhase> phases_;
  std::size_t bias_;  // offset of the biases; 0 without biases
  bool relu_;
};

// One thread computes each weight's sum, row by row.
class WeightLoops final : public HostKernel {
 public:
  WeightLoops(const Machine& machine, const ConvolutionGeometry& g)
      : HostKernel{machine, 3},
        layout_{machine.layout},
        weights_{machine.layout, g},
        x_{machine.layout, g.x},
        y_{machine.layout, g.y},
        phase_{forward_phases(g).front()},
        parts_{parts_of(machine.layout, g.parameters())} {}

 private:
  void compute(const KernelArguments& arguments) override {
    const auto operands = operands_of<LinearBackwardWeights>(arguments.operands);
    float* const sums = floats(arguments.workspace);
    float* const gradient = floats(operands.out.dparameters);
    std::fill_n(sums, weights_.count(), 0.F);
    with_elements(layout_, [&](auto elements) {
      const auto* const x = elements(operands.in.x);
      const auto* const dy = elements(operands.in.dy);
      with_lanes(y_.strips.lanes, [&](auto lanes) {
        const std::size_t taps = phase_.taps.size();
#pragma omp parallel for schedule(static)
        for (std::size_t i = 0; i < y_.strips.blocks * taps; ++i) {
          const WindowTap& tap = phase_.taps[i % taps];
          add_tap<decltype(lanes)::value>(tap, i / taps, x, dy,
                                          sums + weights_.place(i / taps, tap.number));
        }
      });
      if (parts_.second > 0) sum_channels(y_.strips, dy, gradient + parts_.second_begin);
    });
    weights_.write(sums, gradient);
    zero_gaps(parts_, gradient);
  }

  template <std::size_t kLanes, class T>
  void add_tap(const WindowTap& tap, std::size_t block, const T* x, const T* dy,
               float* sums) const {
    const auto [begin, end] = inside(phase_, tap, x_.width);
    if (begin == end) return;
    const auto column = static_cast<std::ptrdiff_t>(begin * phase_.source_step.width) + tap.column;
    for (std::size_t n = 0; n < y_.strips.batch; ++n) {
      for (std::size_t row = 0; row < y_.height; ++row) {
        const auto source = static_cast<std::ptrdiff_t>(row * phase_.source_step.height) + tap.row;
        if (!x_.has(source)) continue;
        add_slopes<kLanes>(x + x_.place(n, block, static_cast<std::size_t>(source),
                                        static_cast<std::size_t>(column)),
                           phase_.source_step.width, dy + y_.place(n, block, row, begin),
                           end - begin, sums);
      }
    }
  }

  Layout layout_;
  LaneWeights weights_;
  Rows x_;
  Rows y_;
  WindowPhase phase_;
  ParameterParts parts_;
};

}  // namespace

bool is_depthwise(const Layout& layout, const ConvolutionGeometry& geometry) {
  return geometry.groups > 1 && geometry.groups == geometry.x.image.channels &&
         geometry.groups == geometry.y.image.channels && layout.lanes(geometry.x.image) > 1;
}

std::unique_ptr<Kernel> make_depthwise(const Machine& machine, const ConvolutionForward& op) {
  const ConvolutionGeometry& g = op.geometry;
  return std::make_unique<PixelLoops>(machine, g, g.x, g.y, forward_phases(g), g.bias, op.relu);
}
std::unique_ptr<Kernel> make_depthwise(const Machine& machine, const ConvolutionBackwardData& op) {
  const ConvolutionGeometry& g = op.geometry;
  return std::make_unique<PixelLoops>(machine, g, g.y, g.x, backward_phases(g),
                                      /*has_bias=*/false, /*relu=*/false);
}
std::unique_ptr<Kernel> make_depthwise(const Machine& machine,
                                       const ConvolutionBackwardWeights& op) {
  return std::make_unique<WeightLoops>(machine, op.geometry);
}

um::Bytes depthwise_workspace(const Machine& machine, const ConvolutionGeometry& geometry) {
  return float_bytes(LaneWeights{machine.layout, geometry}.count());
}

}  // namespace spillway::host
