#pragma once

#include <algorithm>
#include <cstddef>
#include <optional>

#include "src/cuda/kernels/kernels.h"
#include "src/cuda/kernels/launch.cuh"
#include "src/cuda/layout/step_numbers.h"
#include "src/ops/dropout_mask.h"

namespace spillway::cuda {

static_assert(kAttentionTile == kWarp);

/// What a step drops of an attention's weights: its kernels read it where AttentionShape::drops.
class AttentionMask {
 public:
  AttentionMask(const Machine& machine, const AttentionGeometry& geometry) {
    if (geometry.dropout == 0) return;
    mask_.emplace(machine.numbers->add(
        [geometry](const StepContext& context) { return attention_mask(geometry, context); }));
  }

  /// Null where nothing is dropped.
  [[nodiscard]] const DropoutMask* get() const { return mask_ ? mask_->get() : nullptr; }

 private:
  std::optional<StepNumber<DropoutMask>> mask_;
};

/// Which tokens a block has.
struct AttentionPlace {
  std::size_t n;
  std::size_t head;
  std::size_t first;  ///< token of the first warp
};
__device__ inline AttentionPlace attention_place(const AttentionShape& shape, std::size_t block,
                                                 std::size_t all_heads) {
  const std::size_t tile = block % shape.tiles();
  const std::size_t head = block / shape.tiles();
  return {.n = head / all_heads, .head = head % all_heads, .first = tile * kAttentionWarps};
}

/// Copies up to `count` rows of a head, `stride` elements apart, into shared memory; zeros behind
/// them. Called by all threads of a block.
template <class T>
__device__ void load_rows(const AttentionShape& shape, const T* rows, std::size_t stride,
                          std::size_t count, std::size_t room, float* shared) {
  for (std::size_t i = threadIdx.x; i < room * shape.width; i += blockDim.x) {
    const std::size_t row = i / shape.width;
    const std::size_t c = i % shape.width;
    shared[row * shape.shared_stride() + c] = row < count ? load_one(rows, row * stride + c) : 0.F;
  }
}

/// Rows of a head, `stride` elements apart, and where in shared memory they go.
template <class T>
struct RowsToLoad {
  const T* rows;
  std::size_t stride;
  float* shared;
};

/// Loads two kinds of rows when all threads of the block are done with what was there before, and
/// returns when all of it has come.
template <class T>
__device__ void load_both(const AttentionShape& shape, const RowsToLoad<T>& a,
                          const RowsToLoad<T>& b, std::size_t count, std::size_t room) {
  __syncthreads();
  load_rows(shape, a.rows, a.stride, count, room, a.shared);
  load_rows(shape, b.rows, b.stride, count, room, b.shared);
  __syncthreads();
}

__device__ inline float dot(const float* a, const float* b, std::size_t count) {
  float sum = 0.F;
  for (std::size_t c = 0; c < count; ++c) sum += a[c] * b[c];
  return sum;
}

/// `weight` as dropout leaves it.
__device__ inline float dropped(const DropoutMask& mask, std::size_t query, std::size_t key,
                                float weight) {
  const PhiloxCounter words = mask.words(query, key / DropoutMask::kGroup);
  return mask.apply(words[key % DropoutMask::kGroup], weight);
}

}  // namespace spillway::cuda
