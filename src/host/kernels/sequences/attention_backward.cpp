#include <omp.h>

#include <algorithm>

#include "src/host/kernels/kernels.h"
#include "src/host/kernels/sequences/attention_tiles.h"
#include "src/host/kernels/sequences/exponential.h"

namespace spillway::host {
namespace {

// A thread's room: tiles of weights, of weights as dropped, and of slopes, and a number for each
// query.
constexpr std::size_t kBackwardRoom = 3 * AttentionTiles::kTile + AttentionTiles::kQueries;

// The gradients of one key head and of the heads that it serves (Dao et al., 2022, algorithm 4).
// With P = exp(S - log-sum-exp), P' what dropout left of it, and D = rows' sums of dO O: dV = P'^T
// dO, dP = dO V^T as dropped, dS = P (dP - D), dQ = dS K scale, dK = dS^T Q scale.
class KeyHead {
 public:
  KeyHead(const AttentionTiles& tiles, const Operands<AttentionBackward>& operands, float* room)
      : tiles_{tiles},
        x_{floats(operands.in.x)},
        y_{floats(operands.in.y)},
        dy_{floats(operands.in.dy)},
        saved_{floats(operands.in.saved)},
        dx_{floats(operands.out.dx)},
        weights_{room},
        dropped_{room + AttentionTiles::kTile},
        slopes_{dropped_ + AttentionTiles::kTile},
        means_{slopes_ + AttentionTiles::kTile} {}

  // Requires: dx is zero there.
  void add(std::size_t n, std::size_t kv_head, const DropoutMask& mask) {
    for (std::size_t i = 0; i < tiles_.share; ++i) {
      const std::size_t head = kv_head * tiles_.share + i;
      for (std::size_t first = 0; first < tiles_.tokens; first += AttentionTiles::kQueries) {
        const TokenRange queries{first, std::min(AttentionTiles::kQueries, tiles_.tokens - first)};
        find_means(n, head, queries);
        const std::size_t end = tiles_.key_end(queries.end());
        for (std::size_t key = 0; key < end; key += AttentionTiles::kKeys) {
          const TokenRange keys{key, std::min(AttentionTiles::kKeys, end - key)};
          add_tile({.n = n, .head = head, .kv_head = kv_head, .queries = queries, .keys = keys},
                   mask);
        }
      }
    }
  }

 private:
  struct Tile {
    std::size_t n;
    std::size_t head;
    std::size_t kv_head;
    TokenRange queries;
    TokenRange keys;

    // Of a product of queries by keys by a head's width, in one of three orders.
    [[nodiscard]] ProductSizes of_scores(std::size_t width) const {
      return {.rows = queries.count, .columns = keys.count, .inner = width};
    }
    [[nodiscard]] ProductSizes of_queries(std::size_t width) const {
      return {.rows = queries.count, .columns = width, .inner = keys.count};
    }
    [[nodiscard]] ProductSizes of_keys(std::size_t width) const {
      return {.rows = keys.count, .columns = width, .inner = queries.count};
    }
  };

  void find_means(std::size_t n, std::size_t head, const TokenRange& queries) {
    const std::size_t stride = tiles_.y_rows.stride;
    const std::size_t begin = tiles_.output(n, head) + queries.first * stride;
    for (std::size_t i = 0; i < queries.count; ++i) {
      const float* const y = y_ + begin + i * stride;
      const float* const dy = dy_ + begin + i * stride;
      float sum = 0;
#pragma omp simd reduction(+ : sum)
      for (std::size_t c = 0; c < tiles_.width; ++c) sum += y[c] * dy[c];
      means_[i] = sum;
    }
  }

  void add_tile(const Tile& tile, const DropoutMask& mask) {
    const std::size_t stride = tiles_.x_rows.stride;
    const std::size_t query = tiles_.query(tile.n, tile.head) + tile.queries.first * stride;
    const std::size_t key = tiles_.key(tile.n, tile.kv_head) + tile.keys.first * stride;
    const std::size_t value = tiles_.value(tile.n, tile.kv_head) + tile.keys.first * stride;
    const Matrix dy{.numbers = dy_ + tiles_.output(tile.n, tile.head) +
                               tile.queries.first * tiles_.y_rows.stride,
                    .stride = tiles_.y_rows.stride};
    constexpr std::size_t kStride = AttentionTiles::kKeys;
    multiply(tile.of_scores(tiles_.width), {.numbers = x_ + query, .stride = stride},
             {.numbers = x_ + key, .stride = stride, .transposed = true}, weights_, kStride,
             tiles_.scale, false);
    multiply(tile.of_scores(tiles_.width), dy,
             {.numbers = x_ + value, .stride = stride, .transposed = true}, slopes_, kStride, 1.F,
             false);
    const float* const dropped = differentiate(tile, mask);
    multiply(tile.of_keys(tiles_.width),
             {.numbers = dropped, .stride = kStride, .transposed = true}, dy, dx_ + value, stride,
             1.F, true);
    multiply(tile.of_queries(tiles_.width), {.numbers = slopes_, .stride = kStride},
             {.numbers = x_ + key, .stride = stride}, dx_ + query, stride, tiles_.scale, true);
    multiply(tile.of_keys(tiles_.width),
             {.numbers = slopes_, .stride = kStride, .transposed = true},
             {.numbers = x_ + query, .stride = stride}, dx_ + key, stride, tiles_.scale, true);
  }

  // Scores become weights, and the weights' slopes those of the scores. Returns the weights as they
  // were multiplied with the values.
  const float* differentiate(const Tile& tile, const DropoutMask& mask) {
    const bool drops = tiles_.geometry.dropout > 0;
    const std::size_t saved = tiles_.saved(tile.n, tile.head) + tile.queries.first;
    for (std::size_t i = 0; i < tile.queries.count; ++i) {
      const std::size_t row = i * AttentionTiles::kKeys;
      float* const weights = weights_ + row;
      float* const slopes = slopes_ + row;
      const std::size_t seen =
          tiles_.seen(tile.queries.first + i, tile.keys.first, tile.keys.count);
      const float logarithm = saved_[saved + i];
#pragma omp simd
      for (std::size_t j = 0; j < seen; ++j) weights[j] = exponential(weights[j] - logarithm);
      std::fill(weights + seen, weights + tile.keys.count, 0.F);
      if (drops) {
        drop_weights(mask, saved + i, tile.keys, slopes, slopes);
        drop_weights(mask, saved + i, tile.keys, weights, dropped_ + row);
      }
      const float mean = means_[i];
      for (std::size_t j = 0; j < seen; ++j) slopes[j] = weights[j] * (slopes[j] - mean);
      std::fill(slopes + seen, slopes + tile.keys.count, 0.F);
    }
    return drops ? dropped_ : weights_;
  }

  const AttentionTiles& tiles_;
  const float* x_;
  const float* y_;
  const float* dy_;
  const float* saved_;
  float* dx_;
  float* weights_;
  float* dropped_;
  float* slopes_;
  float* means_;
};

}  // namespace

std::unique_ptr<Kernel> make_kernel(const Machine& machine, const AttentionBackward& op) {
  const AttentionTiles own{machine.layout, op.geometry};
  return kernel_of(machine, op, [tiles = own](const auto& operands, const auto& arguments) {
    const DropoutMask mask = attention_mask(tiles.geometry, *arguments.context);
    const std::size_t kv_heads = tiles.geometry.heads.kv_heads;
    float* const dx = floats(operands.out.dx);
    float* const rooms = floats(arguments.workspace);
#pragma omp parallel for simd schedule(static)
    for (std::size_t i = 0; i < tiles.x_rows.count * tiles.x_rows.stride; ++i) dx[i] = 0.F;
#pragma omp parallel for schedule(dynamic)
    for (std::size_t i = 0; i < tiles.geometry.x.batch * kv_heads; ++i) {
      const auto thread = static_cast<std::size_t>(omp_get_thread_num());
      KeyHead{tiles, operands, rooms + thread * kBackwardRoom}.add(i / kv_heads, i % kv_heads,
                                                                   mask);
    }
  });
}

um::Bytes workspace_of(const Machine& machine, const AttentionBackward& /*op*/) {
  return float_bytes(machine.threads * kBackwardRoom);
}

}  // namespace spillway::host
