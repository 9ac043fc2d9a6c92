#include "src/host/kernels/window_phases.h"

#include <algorithm>
#include <optional>
#include <utility>

namespace spillway::host {
namespace {

std::ptrdiff_t difference(std::size_t a, std::size_t b) {
  return static_cast<std::ptrdiff_t>(a) - static_cast<std::ptrdiff_t>(b);
}

// The row or column of y to which `at` of x adds by place `tap` of the kernel, if any.
std::optional<std::ptrdiff_t> target(std::size_t at, std::size_t padding, std::size_t tap,
                                     std::size_t dilation, std::size_t stride) {
  const std::ptrdiff_t distance = difference(at + padding, tap * dilation);
  const auto signed_stride = static_cast<std::ptrdiff_t>(stride);
  if (distance % signed_stride != 0) return std::nullopt;
  return distance / signed_stride;
}

}  // namespace

std::vector<WindowPhase> forward_phases(const ConvolutionGeometry& g) {
  WindowPhase all{.first = nets::square(0),
                  .step = nets::square(1),
                  .count = {g.y.image.height, g.y.image.width},
                  .source_step = g.stride,
                  .taps = {}};
  for (std::size_t h = 0; h < g.kernel.height; ++h) {
    for (std::size_t w = 0; w < g.kernel.width; ++w) {
      all.taps.push_back({.number = h * g.kernel.width + w,
                          .row = difference(h * g.dilation.height, g.padding.height),
                          .column = difference(w * g.dilation.width, g.padding.width)});
    }
  }
  return {std::move(all)};
}

std::vector<WindowPhase> backward_phases(const ConvolutionGeometry& g) {
  const nets::Shape& x = g.x.image;
  std::vector<WindowPhase> phases;
  for (std::size_t row = 0; row < std::min(g.stride.height, x.height); ++row) {
    for (std::size_t column = 0; column < std::min(g.stride.width, x.width); ++column) {
      WindowPhase& phase = phases.emplace_back();
      phase.first = {row, column};
      phase.step = g.stride;
      phase.count = {(x.height - row - 1) / g.stride.height + 1,
                     (x.width - column - 1) / g.stride.width + 1};
      phase.source_step = nets::square(1);
      for (std::size_t h = 0; h < g.kernel.height; ++h) {
        const auto down = target(row, g.padding.height, h, g.dilation.height, g.stride.height);
        for (std::size_t w = 0; down && w < g.kernel.width; ++w) {
          const auto right = target(column, g.padding.width, w, g.dilation.width, g.stride.width);
          if (!right) continue;
          phase.taps.push_back({.number = h * g.kernel.width + w, .row = *down, .column = *right});
        }
      }
    }
  }
  return phases;
}

}  // namespace spillway::host
