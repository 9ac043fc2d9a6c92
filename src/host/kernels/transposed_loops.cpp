#include "src/host/kernels/transposed_loops.h"

#include <algorithm>
#include <span>
#include <utility>
#include <vector>

#include "src/host/layout/parameter_layout.h"
#include "src/host/layout/thread_floats.h"

namespace spillway::host {
namespace {

using Geometry = TransposedConvolutionGeometry;

std::size_t taps_of(const Geometry& g) { return g.kernel.height * g.kernel.width; }

std::size_t weights_of(const Geometry& g) {
  return g.x.image.channels * g.y.image.channels * taps_of(g);
}

// A row or column of y that a tap adds to from one of x, if it is inside.
struct Side {
  std::size_t size;  // of y
  std::size_t stride;
  std::size_t padding;
  std::size_t dilation;

  [[nodiscard]] bool reaches(std::size_t from, std::size_t tap) const {
    const std::size_t at = from * stride + tap * dilation;
    return at >= padding && at - padding < size;
  }
  [[nodiscard]] std::size_t target(std::size_t from, std::size_t tap) const {
    return from * stride + tap * dilation - padding;
  }
  // The other way round: whether a place of x adds to `to` by this tap, and which.
  [[nodiscard]] bool has_source(std::size_t to, std::size_t tap, std::size_t sources) const {
    const std::size_t at = to + padding;
    const std::size_t offset = tap * dilation;
    return at >= offset && (at - offset) % stride == 0 && (at - offset) / stride < sources;
  }
  [[nodiscard]] std::size_t source(std::size_t to, std::size_t tap) const {
    return (to + padding - tap * dilation) / stride;
  }
};

// The channels of a pixel of a tensor, wherever its layout puts them.
class Pixels {
 public:
  Pixels(const Layout& layout, const TensorShape& shape)
      : image_{layout.padded(shape.image)},
        lanes_{layout.lanes(shape.image)},
        channels_{shape.image.channels} {}

  template <class T>
  void take(const T* tensor, std::size_t n, std::size_t row, std::size_t column,
            float* values) const {
    for (std::size_t c = 0; c < channels_; ++c) values[c] = tensor[place(n, c, row, column)];
  }
  // Padding channels become zero.
  template <class T>
  void put(const float* values, std::size_t n, std::size_t row, std::size_t column,
           T* tensor) const {
    for (std::size_t c = 0; c < image_.channels; ++c) {
      tensor[place(n, c, row, column)] = c < channels_ ? values[c] : 0.F;
    }
  }

 private:
  [[nodiscard]] std::size_t place(std::size_t n, std::size_t c, std::size_t row,
                                  std::size_t column) const {
    const std::size_t strip = (n * image_.channels + c) / lanes_ * image_.height + row;
    return (strip * image_.width + column) * lanes_ + c % lanes_;
  }

  nets::Shape image_;
  std::size_t lanes_;
  std::size_t channels_;
};

void add_multiple(float factor, const float* values, std::size_t count, float* sums) {
#pragma omp simd
  for (std::size_t i = 0; i < count; ++i) sums[i] += factor * values[i];
}

// What the two loops share. Sums run over taps and channels in one order, whichever thread.
class Loops : public HostKernel {
 public:
  Loops(const Machine& machine, const Geometry& geometry)
      : HostKernel{machine, 3},
        layout_{machine.layout},
        g_{geometry},
        x_{machine.layout, geometry.x},
        y_{machine.layout, geometry.y},
        rows_{geometry.y.image.height, geometry.stride.height, geometry.padding.height,
              geometry.dilation.height},
        columns_{geometry.y.image.width, geometry.stride.width, geometry.padding.width,
                 geometry.dilation.width} {
    um::expects(geometry.groups == 1, "one group");
  }

 protected:
  // The canonical numbers, (in, out, taps) and biases, of a block in the workspace, and room for as
  // many behind them.
  [[nodiscard]] float* export_weights(const KernelArguments& arguments, std::byte* block) const {
    auto* const values = reinterpret_cast<float*>(arguments.workspace);
    export_block(layout_, g_.parameters(), floats(block),
                 std::span{values, element_count(g_.parameters())});
    return values;
  }
  [[nodiscard]] float* ordered(const KernelArguments& arguments) const {
    return reinterpret_cast<float*>(arguments.workspace) + element_count(g_.parameters());
  }

  Layout layout_;
  Geometry g_;
  Pixels x_;
  Pixels y_;
  Side rows_;
  Side columns_;
};

class ForwardLoops final : public Loops {
 public:
  ForwardLoops(const Machine& machine, const TransposedConvolutionForward& op)
      : Loops{machine, op.geometry}, relu_{op.relu} {}

 private:
  // Weights as (taps, in, out).
  void compute(const KernelArguments& arguments) override {
    const auto operands = operands_of<TransposedConvolutionForward>(arguments.operands);
    const float* const canonical = export_weights(arguments, operands.in.parameters);
    float* const weights = ordered(arguments);
    const std::size_t out = g_.y.image.channels;
    const std::size_t in = g_.x.image.channels;
    const std::size_t taps = taps_of(g_);
#pragma omp parallel for schedule(static)
    for (std::size_t tap = 0; tap < taps; ++tap) {
      for (std::size_t i = 0; i < in * out; ++i) {
        weights[tap * in * out + i] = canonical[i * taps + tap];
      }
    }
    const float* const bias = g_.bias ? canonical + weights_of(g_) : nullptr;
    ThreadFloats all_sums{g_.y.image.width * out};
    ThreadFloats pixels{in};
#pragma omp parallel
    {
      const std::span<float> sums = all_sums.mine();
      const std::span<float> pixel = pixels.mine();
#pragma omp for collapse(2) schedule(static)
      for (std::size_t n = 0; n < g_.y.batch; ++n) {
        for (std::size_t row = 0; row < g_.y.image.height; ++row) {
          start(bias, sums);
          with_elements(layout_, [&](auto elements) {
            add_row(elements(operands.in.x), weights, n, row, pixel, sums);
            write_row(n, row, sums, elements(operands.out.y));
          });
        }
      }
    }
  }

  void start(const float* bias, std::span<float> sums) const {
    const std::size_t out = g_.y.image.channels;
    for (std::size_t i = 0; i < sums.size(); ++i) sums[i] = bias == nullptr ? 0.F : bias[i % out];
  }

  template <class T>
  void add_row(const T* x, const float* weights, std::size_t n, std::size_t row,
               std::span<float> pixel, std::span<float> sums) const {
    const std::size_t in = g_.x.image.channels;
    const std::size_t out = g_.y.image.channels;
    for (std::size_t kh = 0; kh < g_.kernel.height; ++kh) {
      if (!rows_.has_source(row, kh, g_.x.image.height)) continue;
      for (std::size_t column = 0; column < g_.x.image.width; ++column) {
        x_.take(x, n, rows_.source(row, kh), column, pixel.data());
        for (std::size_t kw = 0; kw < g_.kernel.width; ++kw) {
          if (!columns_.reaches(column, kw)) continue;
          float* const sum = &sums[columns_.target(column, kw) * out];
          const float* const tap = weights + (kh * g_.kernel.width + kw) * in * out;
          for (std::size_t i = 0; i < in; ++i) add_multiple(pixel[i], tap + i * out, out, sum);
        }
      }
    }
  }

  template <class T>
  void write_row(std::size_t n, std::size_t row, std::span<float> sums, T* y) const {
    if (relu_) {
      for (float& sum : sums) sum = sum < 0.F ? 0.F : sum;
    }
    for (std::size_t column = 0; column < g_.y.image.width; ++column) {
      y_.put(&sums[column * g_.y.image.channels], n, row, column, y);
    }
  }

  bool relu_;
};

class BackwardWeightsLoops final : public Loops {
 public:
  BackwardWeightsLoops(const Machine& machine, const TransposedConvolutionBackwardWeights& op)
      : Loops{machine, op.geometry} {}

 private:
  void compute(const KernelArguments& arguments) override {
    const auto operands = operands_of<TransposedConvolutionBackwardWeights>(arguments.operands);
    auto* const gradient = reinterpret_cast<float*>(arguments.workspace);
    with_elements(layout_, [&](auto elements) {
      differentiate(elements(operands.in.x), elements(operands.in.dy), gradient);
    });
    import_block(layout_, g_.parameters(), std::span{gradient, element_count(g_.parameters())},
                 floats(operands.out.dparameters));
  }

  template <class T>
  void differentiate(const T* x, const T* dy, float* gradient) const {
    const std::size_t out = g_.y.image.channels;
    const std::size_t in = g_.x.image.channels;
    const std::size_t taps = taps_of(g_);
    ThreadFloats all_sums{in * out};
    ThreadFloats sources{in};
    ThreadFloats targets{out};
#pragma omp parallel
    {
      const std::span<float> sums = all_sums.mine();
      const std::span<float> from = sources.mine();
      const std::span<float> to = targets.mine();
#pragma omp for schedule(static)
      for (std::size_t tap = 0; tap < taps; ++tap) {
        std::fill(sums.begin(), sums.end(), 0.F);
        for_each_pair(tap, [&](std::size_t n, nets::Extent source, nets::Extent target) {
          x_.take(x, n, source.height, source.width, from.data());
          y_.take(dy, n, target.height, target.width, to.data());
          for (std::size_t i = 0; i < in; ++i)
            add_multiple(from[i], to.data(), out, &sums[i * out]);
        });
        for (std::size_t i = 0; i < in * out; ++i) gradient[i * taps + tap] = sums[i];
      }
    }
    if (g_.bias) sum_channels(dy, gradient + weights_of(g_));
  }

  // Pixels of x and of y that this tap joins.
  template <class Visit>
  void for_each_pair(std::size_t tap, const Visit& visit) const {
    const std::size_t kh = tap / g_.kernel.width;
    const std::size_t kw = tap % g_.kernel.width;
    for (std::size_t n = 0; n < g_.x.batch; ++n) {
      for (std::size_t row = 0; row < g_.x.image.height; ++row) {
        if (!rows_.reaches(row, kh)) continue;
        for (std::size_t column = 0; column < g_.x.image.width; ++column) {
          if (!columns_.reaches(column, kw)) continue;
          visit(n, {row, column}, {rows_.target(row, kh), columns_.target(column, kw)});
        }
      }
    }
  }

  template <class T>
  void sum_channels(const T* dy, float* result) const {
    std::vector<float> pixel(g_.y.image.channels);
    std::vector<double> sums(g_.y.image.channels);
    for (std::size_t n = 0; n < g_.y.batch; ++n) {
      for (std::size_t row = 0; row < g_.y.image.height; ++row) {
        for (std::size_t column = 0; column < g_.y.image.width; ++column) {
          y_.take(dy, n, row, column, pixel.data());
          for (std::size_t c = 0; c < sums.size(); ++c) sums[c] += static_cast<double>(pixel[c]);
        }
      }
    }
    std::transform(sums.begin(), sums.end(), result,
                   [](double sum) { return static_cast<float>(sum); });
  }
};

}  // namespace

std::unique_ptr<Kernel> make_loops(const Machine& machine, const TransposedConvolutionForward& op) {
  return std::make_unique<ForwardLoops>(machine, op);
}
std::unique_ptr<Kernel> make_loops(const Machine& machine,
                                   const TransposedConvolutionBackwardWeights& op) {
  return std::make_unique<BackwardWeightsLoops>(machine, op);
}

um::Bytes loops_workspace(const TransposedConvolutionGeometry& geometry) {
  return float_bytes(element_count(geometry.parameters()) + weights_of(geometry));
}

}  // namespace spillway::host
