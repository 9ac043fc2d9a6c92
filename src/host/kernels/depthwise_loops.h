#pragma once

#include <memory>

#include "src/host/layout/host_kernel.h"
#include "src/ops/backend.h"

namespace spillway::host {

/// Returns true if each channel is a group with one output, and channels are stored in blocks.
[[nodiscard]] bool is_depthwise(const Layout& layout, const ConvolutionGeometry& geometry);

/// Depthwise convolutions as loops over the channels of a block. They serve where oneDNN only has
/// its reference implementation: dilated convolutions, and gradients of kernels larger than 3x3.
/// The workspace holds the weights in the order of the loops. Requires: is_depthwise().
[[nodiscard]] std::unique_ptr<Kernel> make_depthwise(const Machine& machine,
                                                     const ConvolutionForward& op);
[[nodiscard]] std::unique_ptr<Kernel> make_depthwise(const Machine& machine,
                                                     const ConvolutionBackwardData& op);
[[nodiscard]] std::unique_ptr<Kernel> make_depthwise(const Machine& machine,
                                                     const ConvolutionBackwardWeights& op);

/// Returns the workspace of each of these kernels.
[[nodiscard]] um::Bytes depthwise_workspace(const Machine& machine,
                                            const ConvolutionGeometry& geometry);

}  // namespace spillway::host
