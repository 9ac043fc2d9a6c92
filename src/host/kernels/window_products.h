#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "src/host/layout/host_kernel.h"
#include "src/ops/backend.h"
#include "src/ops/weighted_operations.h"

namespace spillway::host {

/// Convolutions as products of matrices. They replace oneDNN's reference implementation, which is
/// hundreds of times slower: it is all that oneDNN 2.6 has for many dilated, grouped and large
/// kernels, for gradients of dense images, and for layers that make dense images.
///
/// The rows of one matrix are the windows under the kernel, one for each pixel. The workspace has
/// room for the weights in another order and for some windows. All arithmetic is in float.
///
/// Requires: `weighted` is the primitive that was made for the operation.
[[nodiscard]] std::unique_ptr<Kernel> make_products(const Machine& machine,
                                                    const ConvolutionForward& op,
                                                    const WeightedPrimitive& weighted);
[[nodiscard]] std::unique_ptr<Kernel> make_products(const Machine& machine,
                                                    const ConvolutionBackwardData& op,
                                                    const WeightedPrimitive& weighted);
[[nodiscard]] std::unique_ptr<Kernel> make_products(const Machine& machine,
                                                    const ConvolutionBackwardWeights& op,
                                                    const WeightedPrimitive& weighted);

/// The workspace of each.
[[nodiscard]] um::Bytes products_workspace(const Machine& machine,
                                           const ConvolutionGeometry& geometry,
                                           const WeightedPrimitive& weighted);

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
