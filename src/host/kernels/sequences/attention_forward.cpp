#include <omp.h>

#include <cmath>
#include <limits>

#include "src/host/kernels/kernels.h"
#include "src/host/kernels/sequences/attention_tiles.h"
#include "src/host/kernels/sequences/exponential.h"

namespace spillway::host {
namespace {

// A thread's room: a tile of scores, another where weights are dropped, and of each query the
// largest score so far and the sum of its weights.
constexpr std::size_t kForwardRoom = 2 * AttentionTiles::kTile + 2 * AttentionTiles::kQueries;

// One head's output for a stretch of queries, a tile of keys after the other (Dao et al., 2022,
// algorithm 1): with each, what was summed up so far is scaled to the largest score seen.
class QueryTile {
 public:
  QueryTile(const AttentionTiles& tiles, const Operands<AttentionForward>& operands, float* room)
      : tiles_{tiles},
        x_{floats(operands.in.x)},
        y_{floats(operands.out.y)},
        saved_{floats(operands.out.saved)},
        scores_{room},
        dropped_{room + AttentionTiles::kTile},
        largest_{dropped_ + AttentionTiles::kTile},
        sums_{largest_ + AttentionTiles::kQueries} {}

  void compute(std::size_t n, std::size_t head, const TokenRange& queries,
               const DropoutMask& mask) {
    const std::size_t stride = tiles_.y_rows.stride;
    float* const y = y_ + tiles_.output(n, head) + queries.first * stride;
    std::fill_n(largest_, queries.count, -std::numeric_limits<float>::infinity());
    std::fill_n(sums_, queries.count, 0.F);
    const std::size_t end = tiles_.key_end(queries.end());
    for (std::size_t first = 0; first < end; first += AttentionTiles::kKeys) {
      const TokenRange keys{first, std::min(AttentionTiles::kKeys, end - first)};
      score(n, head, queries, keys);
      for (std::size_t i = 0; i < queries.count; ++i) {
        const float kept = weigh(i, tiles_.seen(queries.first + i, keys.first, keys.count), keys);
        float* const row = y + i * stride;
        for (std::size_t c = 0; c < tiles_.width; ++c) row[c] = first == 0 ? 0.F : row[c] * kept;
      }
      add_values(n, head, queries, keys, mask, y);
    }
    for (std::size_t i = 0; i < queries.count; ++i) {
      float* const row = y + i * stride;
      const float share = 1.F / sums_[i];
      for (std::size_t c = 0; c < tiles_.width; ++c) row[c] *= share;
      saved_[tiles_.saved(n, head) + queries.first + i] = largest_[i] + std::log(sums_[i]);
    }
  }

 private:
  void score(std::size_t n, std::size_t head, const TokenRange& queries, const TokenRange& keys) {
    const std::size_t stride = tiles_.x_rows.stride;
    const float* const query = x_ + tiles_.query(n, head) + queries.first * stride;
    const float* const key = x_ + tiles_.key(n, head / tiles_.share) + keys.first * stride;
    multiply({.rows = queries.count, .columns = keys.count, .inner = tiles_.width},
             {.numbers = query, .stride = stride},
             {.numbers = key, .stride = stride, .transposed = true}, scores_, AttentionTiles::kKeys,
             tiles_.scale, false);
  }

  // Scores of query `i` become weights, zero for those that it does not see. Returns what sums
  // made before are multiplied by.
  float weigh(std::size_t i, std::size_t seen, const TokenRange& keys) {
    float* const row = scores_ + i * AttentionTiles::kKeys;
    float largest = largest_[i];
    for (std::size_t j = 0; j < seen; ++j) largest = row[j] > largest ? row[j] : largest;
    float sum = 0;
#pragma omp simd reduction(+ : sum)
    for (std::size_t j = 0; j < seen; ++j) {
      row[j] = exponential(row[j] - largest);
      sum += row[j];
    }
    std::fill(row + seen, row + keys.count, 0.F);
    const float kept = keys.first == 0 ? 0.F : exponential(largest_[i] - largest);
    sums_[i] = sums_[i] * kept + sum;
    largest_[i] = largest;
    return kept;
  }

  // y += the weights times the values.
  void add_values(std::size_t n, std::size_t head, const TokenRange& queries,
                  const TokenRange& keys, const DropoutMask& mask, float* y) {
    const float* weights = scores_;
    if (tiles_.geometry.dropout > 0) {
      for (std::size_t i = 0; i < queries.count; ++i) {
        drop_weights(mask, tiles_.saved(n, head) + queries.first + i, keys,
                     scores_ + i * AttentionTiles::kKeys, dropped_ + i * AttentionTiles::kKeys);
      }
      weights = dropped_;
    }
    const std::size_t stride = tiles_.x_rows.stride;
    const float* const value = x_ + tiles_.value(n, head / tiles_.share) + keys.first * stride;
    multiply({.rows = queries.count, .columns = tiles_.width, .inner = keys.count},
             {.numbers = weights, .stride = AttentionTiles::kKeys},
             {.numbers = value, .stride = stride}, y, tiles_.y_rows.stride, 1.F, true);
  }

  const AttentionTiles& tiles_;
  const float* x_;
  float* y_;
  float* saved_;
  float* scores_;
  float* dropped_;
  float* largest_;
  float* sums_;
};

}  // namespace

std::unique_ptr<Kernel> make_kernel(const Machine& machine, const AttentionForward& op) {
  const AttentionTiles own{machine.layout, op.geometry};
  return kernel_of(machine, op, [tiles = own](const auto& operands, const auto& arguments) {
    const DropoutMask mask = attention_mask(tiles.geometry, *arguments.context);
    const std::size_t heads = tiles.geometry.heads.heads;
    const std::size_t each =
        (tiles.tokens + AttentionTiles::kQueries - 1) / AttentionTiles::kQueries;
    float* const rooms = floats(arguments.workspace);
#pragma omp parallel for schedule(dynamic)
    for (std::size_t i = 0; i < tiles.geometry.x.batch * heads * each; ++i) {
      const std::size_t first = i % each * AttentionTiles::kQueries;
      const auto thread = static_cast<std::size_t>(omp_get_thread_num());
      QueryTile{tiles, operands, rooms + thread * kForwardRoom}.compute(
          i / each / heads, i / each % heads,
          {first, std::min(AttentionTiles::kQueries, tiles.tokens - first)}, mask);
    }
    for (std::size_t row = 0; row < tiles.y_rows.count; ++row) {
      tiles.y_rows.zero_padding(floats(operands.out.y) + row * tiles.y_rows.stride);
    }
  });
}

um::Bytes workspace_of(const Machine& machine, const AttentionForward& /*op*/) {
  return float_bytes(machine.threads * kForwardRoom);
}

um::Bytes saved_bytes(const Machine& /*machine*/, const AttentionForward& op) {
  return float_bytes(op.geometry.saved_count());
}

}  // namespace spillway::host
