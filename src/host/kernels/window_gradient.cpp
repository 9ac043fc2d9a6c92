#include "src/host/kernels/window_gradient.h"

#include "src/host/kernels/channel_strips.h"
#include "src/host/layout/onednn.h"
#include "src/host/layout/parameter_layout.h"

namespace spillway::host {
namespace {

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

  ConvolutionGeometry g;
  std::size_t row;  // numbers of a window
  Strips y;         // of a tensor like y
};

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
    const float* const x = floats(operands.in.x);
    const float* const dy = floats(operands.in.dy);
    float* const gradient = floats(operands.out.dparameters);
    float* const rows = floats(arguments.workspace);
    const std::size_t batch = windows.g.x.batch;
    const std::size_t pixels = windows.y.pixels;
    const std::size_t image = windows.g.x.image.elements();
#pragma omp parallel for schedule(static)
    for (std::size_t i = 0; i < batch * pixels; ++i) {
      windows.copy(x + i / pixels * image, i % pixels, rows + i * windows.row);
    }
    zero_gaps(parts, gradient);
    bool had_memory = true;
#pragma omp parallel for schedule(static) reduction(&& : had_memory)
    for (std::size_t block = 0; block < windows.y.blocks; ++block) {
      float* const weights = gradient + block * windows.row * windows.y.lanes;
      for (std::size_t n = 0; n < batch; ++n) {
        const Matrix of_image{
            .numbers = rows + n * pixels * windows.row, .stride = windows.row, .transposed = true};
        const Matrix slopes{.numbers = dy + windows.y.begin(n, block), .stride = windows.y.lanes};
        had_memory = multiply({.rows = windows.row, .columns = windows.y.lanes, .inner = pixels},
                              of_image, slopes, weights, windows.y.lanes, 1.F, n > 0) &&
                     had_memory;
      }
    }
    expect_products(had_memory);
    if (parts.second > 0) sum_channels(windows.y, dy, gradient + parts.second_begin);
  };
  return kernel_of(machine, operation, differentiate);
}

um::Bytes window_workspace(const ConvolutionBackwardWeights& operation) {
  const ConvolutionGeometry& g = operation.geometry;
  return float_bytes(g.y.batch * g.y.image.height * g.y.image.width * g.kernel.height *
                     g.kernel.width * g.x.image.channels);
}

}  // namespace spillway::host
