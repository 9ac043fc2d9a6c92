#pragma once

#include <vector>

#include "src/cuda/layout/layout.h"
#include "src/ops/backend.h"

namespace spillway::cuda {

/// Return the algorithms of an attention: our kernel, then cuDNN's engines. All save the same
/// numbers for backward, so the two passes may use different algorithms.
[[nodiscard]] std::vector<AlgorithmInfo> algorithms_of(const Machine& machine,
                                                       const AttentionForward& op);
[[nodiscard]] std::vector<AlgorithmInfo> algorithms_of(const Machine& machine,
                                                       const AttentionBackward& op);

}  // namespace spillway::cuda
