#pragma once

#include <cstddef>

#include "src/cuda/layout/layout.h"
#include "um/bytes.h"

namespace spillway::cuda {

/// Returns the workspace of channel_sums().
[[nodiscard]] um::Bytes channel_sums_workspace(const ChannelMatrix& matrix);

/// Enqueues: sums[c] = float sum of column c of `x`, always added in the same order.
void channel_sums(const Machine& machine, const ChannelMatrix& matrix, const std::byte* x,
                  std::byte* workspace, float* sums);

}  // namespace spillway::cuda
