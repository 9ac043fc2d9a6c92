#pragma once

#include <cstddef>

#include "src/cuda/kernels/kernels.h"
#include "src/cuda/layout/layout.h"
#include "src/ops/sequence_operations.h"

namespace spillway::cuda {

/// Warps per block. Each handles a token: a query, or in backward a key.
inline constexpr unsigned kAttentionWarps = 8;
/// Tokens in shared memory that all warps of a block visit together, one per lane.
inline constexpr std::size_t kAttentionTile = 32;
/// Largest head width with which a block's tokens fit into shared memory.
inline constexpr std::size_t kWidestHead = 153;
/// Channels of a head that one lane sums.
inline constexpr std::size_t kLaneChannels = (kWidestHead + kAttentionTile - 1) / kAttentionTile;

/// Returns the floats between rows in shared memory: odd, to avoid bank conflicts.
[[nodiscard]] constexpr std::size_t attention_stride(std::size_t width) { return width | 1U; }
/// Returns the bytes of two tiles of tokens and two tokens per warp.
[[nodiscard]] constexpr std::size_t attention_bytes(std::size_t width) {
  return (2 * kAttentionTile + 2 * kAttentionWarps) * attention_stride(width) * sizeof(float);
}
static_assert(attention_bytes(kWidestHead) <= kSharedBytes &&
              attention_bytes(kWidestHead + 1) > kSharedBytes);

/// Shapes of the tensors of attention kernels; a plain value for device code.
struct AttentionShape {
  TokenMatrix x;
  TokenMatrix y;
  std::size_t heads;
  std::size_t kv_heads;
  std::size_t width;  ///< per head
  float scale;
  bool is_causal;
  bool drops;

  [[nodiscard]] constexpr std::size_t samples() const { return x.rows / x.tokens; }
  [[nodiscard]] constexpr std::size_t share() const { return heads / kv_heads; }
  /// Return the element offset of a token's data for a head.
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
  /// Returns a query's index among all: in `saved`, and as a pixel of the mask.
  [[nodiscard]] constexpr std::size_t place(std::size_t n, std::size_t head,
                                            std::size_t token) const {
    return (n * heads + head) * x.tokens + token;
  }
  [[nodiscard]] constexpr std::size_t shared_stride() const { return attention_stride(width); }
  [[nodiscard]] constexpr std::size_t shared_bytes() const { return attention_bytes(width); }
  /// Returns the number of blocks for `all_heads` heads, each block with one token per warp.
  [[nodiscard]] constexpr std::size_t blocks(std::size_t all_heads) const {
    return samples() * all_heads * tiles();
  }
  [[nodiscard]] constexpr std::size_t tiles() const {
    return (x.tokens + kAttentionWarps - 1) / kAttentionWarps;
  }
};

/// Throws: um::Error if heads are wider than kWidestHead.
[[nodiscard]] AttentionShape attention_shape(const AttentionGeometry& geometry);

}  // namespace spillway::cuda
