#pragma once

#include <cstdint>
#include <vector>

#include "src/ops/parameter.h"

namespace spillway {

/// The numbers a parameter block starts with, in the canonical order of parameter.h: weights of
/// convolutions by He (normal, variance 2 / fan-in); of transposed convolutions with as many
/// outputs as inputs, bilinear interpolation of each channel (Long et al., 2015, section 3.3), of
/// others by He, with the inputs and taps of the kernel as fan-in; of linear layers by Xavier
/// (uniform within
/// +-sqrt(6 / (fan-in + fan-out))); biases 0; batch norm gamma 1, beta 0, running mean 0 and
/// variance 1. `index` is the block's place in the network, counted as if each that is trained had
/// one of the optimizer's beside it, whatever it has: each block draws from a sequence of its own.
[[nodiscard]] std::vector<float> initial_values(const ParameterSpec& spec, std::uint64_t seed,
                                                std::uint64_t index);

}  // namespace spillway
