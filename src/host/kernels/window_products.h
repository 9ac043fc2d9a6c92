#pragma once

#include <memory>

#include "src/host/layout/host_kernel.h"
#include "src/host/layout/weighted_kernel.h"
#include "src/ops/backend.h"

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

}  // namespace spillway::host
