#pragma once

#include <algorithm>
#include <cstddef>

#include "src/cuda/kernels/launch.cuh"
#include "src/cuda/kernels/sequences/token_matrix.h"
#include "src/cuda/kernels/warp_sum.cuh"
#include "src/ops/dropout_mask.h"
#include "src/ops/sequence_operations.h"

namespace spillway::cuda {

/// Warps of a block, each with a token of its own: a query, or on the way back a key.
inline constexpr unsigned kAttentionWarps = 8;
/// Tokens that all warps of a block look at together, one for each lane, in shared memory.
inline constexpr std::size_t kAttentionTile = kWarp;
/// Channels of the widest head: more do not fit into shared memory.
inline constexpr std::size_t kWidestHead = 160;
/// Channels of a head that a lane sums up.
inline constexpr std::size_t kLaneChannels = kWidestHead / kWarp;

/// What attention's kernels know of their tensors. A plain value, which device code takes.
struct AttentionShape {
  TokenMatrix x;
  TokenMatrix y;
  std::size_t heads;
  std::size_t kv_heads;
  std::size_t width;  ///< of a head
  float scale;
  bool is_causal;
  bool drops;

  [[nodiscard]] constexpr std::size_t samples() const { return x.rows / x.tokens; }
  [[nodiscard]] constexpr std::size_t share() const { return heads / kv_heads; }
  /// Where a token has what a head needs, in elements.
  [[nodiscard]] constexpr std::size_t query(std::size_t n, std::size_t head,
                                            std::size_t token) const {
    return (n * x.tokens + token) * x.stride + head * width;
  }
  [[nodiscard]] constexpr std::size_t key(std::size_t n, std::size_t kv_head,
                                          std::size_t token) const {
    return query(n, heads + kv_head, token);
  }
  [[nodiscard]] constexpr std::size_t value(std::size_t n, std::size_t kv_head,
                                            std::size_t token) const {
    return query(n, heads + kv_heads + kv_head, token);
  }
  [[nodiscard]] constexpr std::size_t output(std::size_t n, std::size_t head,
                                             std::size_t token) const {
    return (n * x.tokens + token) * y.stride + head * width;
  }
  /// A query's place among all: in `saved`, and as a pixel of the mask.
  [[nodiscard]] constexpr std::size_t place(std::size_t n, std::size_t head,
                                            std::size_t token) const {
    return (n * heads + head) * x.tokens + token;
  }
  /// Floats from row to row in shared memory: odd, so that lanes do not meet in a bank.
  [[nodiscard]] constexpr std::size_t shared_stride() const { return width | 1U; }
  /// Of two tiles of tokens, and two tokens for each warp.
  [[nodiscard]] constexpr std::size_t shared_bytes() const {
    return (2 * kAttentionTile + 2 * kAttentionWarps) * shared_stride() * sizeof(float);
  }
  /// Blocks, each with as many tokens as warps, of each of so many heads.
  [[nodiscard]] constexpr std::size_t blocks(std::size_t all_heads) const {
    return samples() * all_heads * tiles();
  }
  [[nodiscard]] constexpr std::size_t tiles() const {
    return (x.tokens + kAttentionWarps - 1) / kAttentionWarps;
  }
};

/// Throws: um::Error where heads are wider than kWidestHead.
[[nodiscard]] AttentionShape attention_shape(const AttentionGeometry& geometry);

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
