#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "src/host/layout/host_kernel.h"
#include "src/ops/backend.h"
#include "src/ops/weighted_operations.h"

namespace spillway::host {

/// Convolutions as matrix products. They replace oneDNN's reference implementation, which is
/// hundreds of times slower. oneDNN 2.6 has nothing else for many dilated, grouped and large
/// kernels, for gradients of dense images, and for layers with dense output.
///
/// The rows of one matrix are the windows under the kernel, one per pixel. The workspace holds
/// reordered weights and some of the windows. All arithmetic is in float.
///
/// Requires: `weighted` is the operation's primitive.
[[nodiscard]] std::unique_ptr<Kernel> make_products(const Machine& machine,
                                                    const ConvolutionForward& op,
                                                    const WeightedPrimitive& weighted);
[[nodiscard]] std::unique_ptr<Kernel> make_products(const Machine& machine,
                                                    const ConvolutionBackwardData& op,
                                                    const WeightedPrimitive& weighted);
[[nodiscard]] std::unique_ptr<Kernel> make_products(const Machine& machine,
                                                    const ConvolutionBackwardWeights& op,
                                                    const WeightedPrimitive& weighted);

/// Returns the workspace of each of these kernels.
[[nodiscard]] um::Bytes products_workspace(const Machine& machine,
                                           const ConvolutionGeometry& geometry,
                                           const WeightedPrimitive& weighted);

/// A kernel position: its number, row by row, and its offset in the source tensor from the window's
/// first pixel.
struct WindowTap {
  std::size_t number;
  std::ptrdiff_t row;
  std::ptrdiff_t column;
};

/// Every `step`-th pixel of the tensor that a convolution pass writes. Their windows in the source
/// tensor have the same taps; windows may extend beyond it.
struct WindowPhase {
  nets::Extent first;
  nets::Extent step;
  nets::Extent count;
  nets::Extent source_step;  ///< distance between the windows of neighbours
  std::vector<WindowTap> taps;

  [[nodiscard]] std::size_t pixels() const { return count.height * count.width; }
};

/// Returns the single phase of all pixels of y, with windows in x.
[[nodiscard]] std::vector<WindowPhase> forward_phases(const ConvolutionGeometry& geometry);
/// Returns the phases of the pixels of x, with gradients that are sums over windows in dy. There is
/// one phase for each remainder of row and column by the stride.
[[nodiscard]] std::vector<WindowPhase> backward_phases(const ConvolutionGeometry& geometry);

}  // namespace spillway::host
