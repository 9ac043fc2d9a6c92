#pragma once

#include <cstddef>

#include "src/cuda/layout/parameter_layout.h"

namespace spillway::cuda {

/// What kernels multiply with and add, in a block of a layer with weights: numbers of the tensors'
/// type, the bfloat16 copy where there is one.
[[nodiscard]] inline std::byte* kernel_weights(const ParameterLayout& layout, std::byte* block) {
  const um::Bytes at = layout.has_bf16_copy() ? layout.bf16_weights() : ParameterLayout::weights();
  return block + at.count();
}
/// Null without biases.
[[nodiscard]] inline std::byte* kernel_bias(const ParameterLayout& layout, std::byte* block) {
  if (layout.bias_count() == 0) return nullptr;
  return block + (layout.has_bf16_copy() ? layout.bf16_bias() : layout.bias()).count();
}
/// The biases as floats, of parameters or their gradient. Null without biases.
[[nodiscard]] inline float* float_bias(const ParameterLayout& layout, std::byte* block) {
  if (layout.bias_count() == 0) return nullptr;
  return reinterpret_cast<float*>(block + layout.bias().count());
}

}  // namespace spillway::cuda
