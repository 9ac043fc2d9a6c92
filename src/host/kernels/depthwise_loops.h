#pragma once

#include <memory>

#include "src/host/layout/host_kernel.h"
#include "src/host/layout/weighted_kernel.h"
#include "src/ops/backend.h"

namespace spillway::host {

/// Whether each channel is a group of its own with one output, and channels lie in blocks.
[[nodiscard]] bool is_depthwise(const Layout& layout, const ConvolutionGeometry& geometry);

/// Depthwise convolutions as loops over the channels of a block, for those of which oneDNN has
/// nothing but its reference implementation: dilated ones and gradients of kernels larger than 3x3.
/// The workspace has the weights in the order of the loops. Requires: is_depthwise().
[[nodiscard]] std::unique_ptr<Kernel> make_depthwise(const Machine& machine,
                                                     const ConvolutionForward& op);
[[nodiscard]] std::unique_ptr<Kernel> make_depthwise(const Machine& machine,
                                                     const ConvolutionBackwardData& op);
[[nodiscard]] std::unique_ptr<Kernel> make_depthwise(const Machine& machine,
                                                     const ConvolutionBackwardWeights& op);

/// The workspace of each.
[[nodiscard]] um::Bytes depthwise_workspace(const Machine& machine,
                                            const ConvolutionGeometry& geometry);

}  // namespace spillway::host
