#pragma once

#include <cstddef>
#include <vector>

#include "src/ops/weighted_operations.h"

namespace spillway::host {

/// A place under the kernel: its number, row by row, and where it is in the tensor that is read,
/// counted from the window's first pixel.
struct WindowTap {
  std::size_t number;
  std::ptrdiff_t row;
  std::ptrdiff_t column;
};

/// Pixels of the tensor that a convolution's pass writes, one in `step`, whose windows in the
/// tensor that it reads have the same taps. Windows may stick out.
struct WindowPhase {
  nets::Extent first;
  nets::Extent step;
  nets::Extent count;
  nets::Extent source_step;  ///< between the windows of neighbours
  std::vector<WindowTap> taps;

  [[nodiscard]] std::size_t pixels() const { return count.height * count.width; }
};

/// The pixels of y, whose windows are in x: a single phase.
[[nodiscard]] std::vector<WindowPhase> forward_phases(const ConvolutionGeometry& geometry);
/// The pixels of x, whose gradients are sums over windows in dy: a phase for each remainder of row
/// and column by the stride.
[[nodiscard]] std::vector<WindowPhase> backward_phases(const ConvolutionGeometry& geometry);

}  // namespace spillway::host
