#pragma once

#include <vector>

#include "src/cuda/layout/layout.h"
#include "src/ops/backend.h"

namespace spillway::cuda {

/// The ways to run an attention: our kernel, and behind it what cuDNN offers. All keep the same
/// numbers for the way back, so that the two passes may run by different ones.
[[nodiscard]] std::vector<AlgorithmInfo> algorithms_of(const Machine& machine,
                                                       const AttentionForward& op);
[[nodiscard]] std::vector<AlgorithmInfo> algorithms_of(const Machine& machine,
                                                       const AttentionBackward& op);

}  // namespace spillway::cuda
