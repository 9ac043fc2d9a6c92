#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>

#include "src/host/kernels/sequences/head_rows.h"
#include "src/host/kernels/sequences/token_rows.h"
#include "src/host/layout/host_kernel.h"
#include "src/ops/dropout_mask.h"

namespace spillway::host {

/// How attention goes over its matrix of scores: in tiles of queries by keys, of which each thread
/// has one at a time. Nothing depends on the number of threads.
struct AttentionTiles {
  static constexpr std::size_t kQueries = 128;
  static constexpr std::size_t kKeys = 128;
  /// Floats of a tile.
  static constexpr std::size_t kTile = kQueries * kKeys;
  /// So many floats, for each thread: whole cache lines.
  [[nodiscard]] static constexpr std::size_t whole_lines(std::size_t floats) {
    constexpr std::size_t kLine = 16;
    return (floats + kLine - 1) / kLine * kLine;
  }

  AttentionTiles(const Layout& layout, const AttentionGeometry& op)
      : geometry{op},
        tokens{op.x.image.height},
        width{op.heads.width(op.x)},
        share{op.heads.heads / op.heads.kv_heads},
        x_rows{layout, op.x},
        y_rows{layout, op.y()},
        scale{1.F / std::sqrt(static_cast<float>(width))} {}

  /// Where the first token of sample `n` has what a head needs, in elements.
  [[nodiscard]] std::size_t query(std::size_t n, std::size_t head) const {
    return n * tokens * x_rows.stride + head * width;
  }
  [[nodiscard]] std::size_t key(std::size_t n, std::size_t kv_head) const {
    return query(n, geometry.heads.heads + kv_head);
  }
  [[nodiscard]] std::size_t value(std::size_t n, std::size_t kv_head) const {
    return query(n, geometry.heads.heads + geometry.heads.kv_heads + kv_head);
  }
  [[nodiscard]] std::size_t output(std::size_t n, std::size_t head) const {
    return n * tokens * y_rows.stride + head * width;
  }
  [[nodiscard]] std::size_t saved(std::size_t n, std::size_t head) const {
    return (n * geometry.heads.heads + head) * tokens;
  }

  /// Keys that the queries before `query_end` see.
  [[nodiscard]] std::size_t key_end(std::size_t query_end) const {
    return geometry.is_causal ? query_end : tokens;
  }
  /// Keys of the tile from `first` on, of `count`, that `query` sees.
  [[nodiscard]] std::size_t seen(std::size_t query, std::size_t first, std::size_t count) const {
    if (!geometry.is_causal) return count;
    return query < first ? 0 : std::min(count, query - first + 1);
  }

  AttentionGeometry geometry;
  std::size_t tokens;
  std::size_t width;  ///< of a head
  std::size_t share;  ///< heads of a key head
  TokenRows x_rows;
  TokenRows y_rows;
  float scale;
};

/// Multiplies the weights of one query, for `keys.count` keys, by the factors of dropout. `pixel`
/// is the query's place in attention_mask().
inline void drop_weights(const DropoutMask& mask, std::size_t pixel, const TokenRange& keys,
                         const float* weights, float* dropped) {
  for (std::size_t j = 0; j < keys.count;) {
    const std::size_t key = keys.first + j;
    const PhiloxCounter words = mask.words(pixel, key / DropoutMask::kGroup);
    for (std::size_t w = key % DropoutMask::kGroup; w < DropoutMask::kGroup && j < keys.count;
         ++w, ++j) {
      dropped[j] = mask.apply(words.at(w), weights[j]);
    }
  }
}

}  // namespace spillway::host
