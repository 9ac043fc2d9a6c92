#include "src/host/kernels/window_gradient.h"

#include <algorithm>

#include "src/host/kernels/channel_strips.h"
#include "src/host/layout/onednn.h"
#include "src/host/layout/parameter_layout.h"

namespace spillway::host {
namespace {

// So many numbers of windows at a time: one image of 14x14 patches of 16x16 fits, and the workspace
// stays small beside the activations of large images under small kernels.
constexpr std::size_t kWindowNumbers = std::size_t{1} << 18;

// The windows of an image as rows of a matrix, one for each pixel of y: a row has the channels of
// each place under the kernel, as blocks of weights of dense images have them.
struct Windows {
  Windows(const Layout& layout, const ConvolutionGeometry& op)
      : g{op}, row{op.kernel.height * op.kernel.width * op.x.image.channels}, y{layout, op.y} {}

  // A place of x, or zero outside.
  [[nodiscard]] float at(const float* image, std::size_t channel, std::size_t h,
                         std::size_t w) const {
    const nets::Shape& x = g.x.image;
    const bool is_inside = h >= g.padding.height && h - g.padding.height < x.height &&
                           w >= g.padding.width && w - g.padding.width < x.width;
    if (!is_inside) return 0.F;
    return image[(channel * x.height + h - g.padding.height) * x.width + w - g.padding.width];
  }

  void copy(const float* image, std::size_t pixel, float* to) const {
    const std::size_t top = pixel / g.y.image.width * g.stride.height;
    const std::size_t left = pixel % g.y.image.width * g.stride.width;
    for (std::size_t kh = 0; kh < g.kernel.height; ++kh) {
      for (std::size_t kw = 0; kw < g.kernel.width; ++kw) {
        for (std::size_t c = 0; c < g.x.image.channels; ++c) {
          *to++ = at(image, c, top + kh * g.dilation.height, left + kw * g.dilation.width);
        }
      }
    }
  }

  [[nodiscard]] std::size_t pixels_at_once() const {
    return std::clamp(kWindowNumbers / row, std::size_t{1}, y.pixels);
  }

  ConvolutionGeometry g;
  std::size_t row;  // numbers of a window
  Strips y;         // of a tensor like y
};

// What the products read and write.
struct WindowNumbers {
  const float* x;
  const float* dy;
  float* rows;  // the workspace
  float* gradient;
};

// Pixels of one image.
struct PixelRange {
  std::size_t image;
  std::size_t first;
  std::size_t count;
};

// Copies the windows of `pixels` to `rows`, and adds their products with dy to `gradient`, or
// begins it. Returns whether there was memory for the products.
bool add_windows(const Windows& windows, const PixelRange& pixels, const WindowNumbers& numbers,
                 bool begins) {
  const float* const image = numbers.x + pixels.image * windows.g.x.image.elements();
#pragma omp parallel for schedule(static)
  for (std::size_t i = 0; i < pixels.count; ++i) {
    windows.copy(image, pixels.first + i, numbers.rows + i * windows.row);
  }
  const std::size_t lanes = windows.y.lanes;
  bool had_memory = true;
#pragma omp parallel for schedule(static) reduction(&& : had_memory)
  for (std::size_t block = 0; block < windows.y.blocks; ++block) {
    const Matrix of_windows{.numbers = numbers.rows, .stride = windows.row, .transposed = true};
    const Matrix slopes{
        .numbers = numbers.dy + windows.y.begin(pixels.image, block) + pixels.first * lanes,
        .stride = lanes};
    had_memory =
        multiply({.rows = windows.row, .columns = lanes, .inner = pixels.count}, of_windows, slopes,
                 numbers.gradient + block * windows.row * lanes, lanes, 1.F, !begins) &&
        had_memory;
  }
  return had_memory;
}

}  // namespace

bool takes_windows(const Machine& machine, const ConvolutionBackwardWeights& operation,
                   const WeightedPrimitive& weighted) {
  const ConvolutionGeometry& g = operation.geometry;
  const Layout& layout = machine.layout;
  return g.groups == 1 && !layout.is_bf16() && layout.is_dense(g.x.image.channels) &&
         !layout.is_dense(g.y.image.channels) && is_reference(weighted);
}

std::unique_ptr<Kernel> make_window_gradient(const Machine& machine,
                                             const ConvolutionBackwardWeights& operation) {
  const Windows own{machine.layout, operation.geometry};
  const ParameterParts of_block = parts_of(machine.layout, operation.geometry.parameters());
  const auto differentiate = [windows = own, parts = of_block](const auto& operands,
                                                               const auto& arguments) {
    const WindowNumbers numbers{floats(operands.in.x), floats(operands.in.dy),
                                floats(arguments.workspace), floats(operands.out.dparameters)};
    zero_gaps(parts, numbers.gradient);
    bool had_memory = true;
    for (std::size_t n = 0; n < windows.g.x.batch; ++n) {
      for (std::size_t first = 0; first < windows.y.pixels; first += windows.pixels_at_once()) {
        const std::size_t count = std::min(windows.pixels_at_once(), windows.y.pixels - first);
        had_memory = add_windows(windows, {n, first, count}, numbers, n + first == 0) && had_memory;
      }
    }
    expect_products(had_memory);
    if (parts.second == 0) return;
    sum_channels(windows.y, numbers.dy, numbers.gradient + parts.second_begin);
  };
  return kernel_of(machine, operation, differentiate);
}

um::Bytes window_workspace(const Machine& machine, const ConvolutionBackwardWeights& operation) {
  const Windows windows{machine.layout, operation.geometry};
  return float_bytes(windows.pixels_at_once() * windows.row);
}

}  // namespace spillway::host
