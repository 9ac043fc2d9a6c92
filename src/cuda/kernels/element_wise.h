#pragma once

#include <cstddef>

#include "src/cuda/layout/layout.h"

namespace spillway::cuda {

/// Enqueues: y = y + bias, a float for each padded channel, unless `bias` is null; then, with
/// `relu`, y = max(0, y). For what has no engine that does it on the way.
void add_bias_relu(const Machine& machine, const ChannelMatrix& matrix, std::byte* y,
                   const float* bias, bool relu);

/// Enqueues: to[i] = from[i], `count` bfloat16 numbers. Requires: both begin at multiples of 16
/// bytes; `count` is a multiple of 8.
void widen(const Machine& machine, std::size_t count, const std::byte* from, float* to);

}  // namespace spillway::cuda
