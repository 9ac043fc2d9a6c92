#pragma once

#include <cstddef>

#include "src/cuda/layout/layout.h"

namespace spillway::cuda {

/// Enqueues y = y + bias, with one float per padded channel, unless `bias` is null; then, with
/// `relu`, y = max(0, y). For operations without an engine that fuses both.
void add_bias_relu(const Machine& machine, const ChannelMatrix& matrix, std::byte* y,
                   const float* bias, bool relu);

/// Enqueues the conversion of `count` bfloat16 numbers to floats. Requires: both pointers are
/// aligned to 16 bytes; `count` is a multiple of 8.
void widen(const Machine& machine, std::size_t count, const std::byte* from, float* to);

}  // namespace spillway::cuda
