#pragma once

#include <memory>

#include "src/host/layout/host_kernel.h"
#include "src/host/layout/weighted_kernel.h"
#include "src/ops/backend.h"

namespace spillway::host {

/// Whether oneDNN has nothing but its reference implementation for the gradient of the weights of a
/// convolution of a dense image, as in fp32 for the 16x16 patches of vision transformers: hundreds
/// of times slower than products of windows.
[[nodiscard]] bool takes_windows(const Machine& machine,
                                 const ConvolutionBackwardWeights& operation,
                                 const WeightedPrimitive& weighted);

/// The gradient as products of the windows of pixels, of which the workspace has room for some,
/// with dy. Each sum is made by one thread, in the order of the pixels. Requires: takes_windows().
[[nodiscard]] std::unique_ptr<Kernel> make_window_gradient(
    const Machine& machine, const ConvolutionBackwardWeights& operation);
[[nodiscard]] um::Bytes window_workspace(const Machine& machine,
                                         const ConvolutionBackwardWeights& operation);

}  // namespace spillway::host
