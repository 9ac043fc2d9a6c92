#pragma once

#include <memory>

#include "src/host/layout/host_kernel.h"
#include "src/ops/backend.h"

namespace spillway::host {

/// The forward pass and the gradient of the weights of transposed convolutions of large kernels,
/// for which oneDNN 2.6 has its reference implementation alone: a thousand times slower, since it
/// tries each tap of the kernel for each pixel, of which a stride leaves few. Requires: one group.
[[nodiscard]] std::unique_ptr<Kernel> make_loops(const Machine& machine,
                                                 const TransposedConvolutionForward& op);
[[nodiscard]] std::unique_ptr<Kernel> make_loops(const Machine& machine,
                                                 const TransposedConvolutionBackwardWeights& op);

/// The workspace of each: the parameters and once more the weights, in other orders.
[[nodiscard]] um::Bytes loops_workspace(const TransposedConvolutionGeometry& geometry);

}  // namespace spillway::host
