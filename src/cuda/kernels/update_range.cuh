#pragma once

#include <cuda_bf16.h>

#include <cstddef>

#include "src/cuda/layout/pack.cuh"
#include "src/cuda/layout/parameter_layout.h"
#include "src/ops/parameter.h"

namespace spillway::cuda {

/// What an update goes over: the floats of a block in packs, padding included. Each part of a block
/// is whole packs.
struct UpdateRange {
  std::size_t packs;
  std::size_t decayed;    ///< of them, those from the first on to which weight decay applies
  __nv_bfloat16* w_copy;  ///< of the parameters, to be written too; null without one

  /// `block` holds the parameters that are written.
  static UpdateRange of(const ParameterLayout& layout, const ParameterSpec& spec,
                        std::byte* block) {
    constexpr std::size_t kLanes = Pack<float>::kLanes;
    UpdateRange range{.packs = layout.float_count() / kLanes,
                      .decayed = has_weights(spec) ? layout.weight_count() / kLanes : 0,
                      .w_copy = nullptr};
    if (layout.has_bf16_copy()) {
      range.w_copy = reinterpret_cast<__nv_bfloat16*>(block + layout.bf16_weights().count());
    }
    return range;
  }

  /// Pack number `i` of the updated parameters.
  __device__ void store_copy(std::size_t i, const Pack<float>& w) const {
    if (w_copy == nullptr) return;
    auto* const pairs = reinterpret_cast<__nv_bfloat162*>(w_copy) + 2 * i;
    pairs[0] = __floats2bfloat162_rn(w.lanes[0], w.lanes[1]);
    pairs[1] = __floats2bfloat162_rn(w.lanes[2], w.lanes[3]);
  }
};

}  // namespace spillway::cuda
