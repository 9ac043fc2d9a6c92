#include <omp.h>

#include <cmath>
#include <limits>

#include "src/host/kernels/kernels.h"
#include "src/host/kernels/sequences/attention_tiles.h"
#include "src/host/kernels/sequences/exponential.h"
#include "um/machine/mapping.h"

namespace spillway::host {
namespace {

// Numbers become exp(number - most). Returns their sum.
SPILLWAY_WIDE float exponentiate(float* numbers, std::size_t count, float most) {
  float sum = 0;
#pragma omp simd reduction(+ : sum)
  for (std::size_t j = 0; j < count; ++j) {
    numbers[j] = exponential(numbers[j] - most);
    sum += numbers[j];
  }
  return sum;
}

// The largest of the numbers and `most`.
SPILLWAY_WIDE float largest_score(const float* numbers, std::size_t count, float most) {
#pragma omp simd reduction(max : most)
  for (std::size_t j = 0; j < count; ++j) most = numbers[j] > most ? numbers[j] : most;
  return most;
}

// A thread's room: a tile of scores, another where weights are dropped, of each query the largest
// score so far and the sum of its weights; and with bfloat16 tiles of queries, of keys or values,
// and of the output.
std::size_t forward_room(const Layout& layout, const AttentionGeometry& geometry) {
  constexpr std::size_t kRoom = 2 * AttentionTiles::kTile + 2 * AttentionTiles::kQueries;
  const std::size_t width = geometry.heads.width(geometry.x);
  const std::size_t rows = layout.is_bf16() ? 3 * AttentionTiles::kQueries : 0;
  return AttentionTiles::whole_lines(kRoom + rows * width);
}

// One head's output for a stretch of queries, a tile of keys after the other (Dao et al., 2022,
// algorithm 1): with each, what was summed up so far is scaled to the largest score seen.
template <class T>
class QueryTile {
 public:
  QueryTile(const AttentionTiles& tiles, const T* x, T* y, float* saved, float* room)
      : tiles_{tiles},
        x_{x},
        y_{y},
        saved_{saved},
        scores_{room},
        dropped_{room + AttentionTiles::kTile},
        largest_{dropped_ + AttentionTiles::kTile},
        sums_{largest_ + AttentionTiles::kQueries},
        query_room_{sums_ + AttentionTiles::kQueries},
        key_room_{query_room_ + AttentionTiles::kQueries * tiles.width},
        output_room_{key_room_ + AttentionTiles::kKeys * tiles.width} {}

  // Returns false when there was no memory for products.
  [[nodiscard]] bool compute(std::size_t n, std::size_t head, const TokenRange& queries,
                             const DropoutMask& mask) {
    const std::size_t stride = tiles_.y_rows.stride;
    T* const y = y_ + tiles_.output(n, head) + queries.first * stride;
    const RowSums output = row_sums(y, stride, tiles_.width, output_room_);
    const Matrix query =
        rows_for_products(x_ + tiles_.query(n, head) + queries.first * tiles_.x_rows.stride,
                          tiles_.x_rows.stride, queries, tiles_.width, query_room_);
    std::fill_n(largest_, queries.count, -std::numeric_limits<float>::infinity());
    std::fill_n(sums_, queries.count, 0.F);
    const std::size_t end = tiles_.key_end(queries.end());
    for (std::size_t first = 0; first < end; first += AttentionTiles::kKeys) {
      const TokenRange keys{first, std::min(AttentionTiles::kKeys, end - first)};
      score(n, head, query, queries, keys);
      for (std::size_t i = 0; i < queries.count; ++i) {
        const float kept = weigh(i, tiles_.seen(queries.first + i, keys.first, keys.count), keys);
        float* const row = output.numbers + i * output.stride;
        for (std::size_t c = 0; c < tiles_.width; ++c) row[c] = first == 0 ? 0.F : row[c] * kept;
      }
      add_values(n, head, queries, keys, mask, output);
    }
    for (std::size_t i = 0; i < queries.count; ++i) {
      float* const row = output.numbers + i * output.stride;
      const float share = 1.F / sums_[i];
      for (std::size_t c = 0; c < tiles_.width; ++c) row[c] *= share;
      saved_[tiles_.saved(n, head) + queries.first + i] = largest_[i] + std::log(sums_[i]);
    }
    put_rows(output, queries.count, tiles_.width, y, stride);
    return had_memory_;
  }

 private:
  void score(std::size_t n, std::size_t head, const Matrix& query, const TokenRange& queries,
             const TokenRange& keys) {
    const std::size_t stride = tiles_.x_rows.stride;
    Matrix key = rows_for_products(x_ + tiles_.key(n, head / tiles_.share) + keys.first * stride,
                                   stride, keys, tiles_.width, key_room_);
    key.transposed = true;
    had_memory_ &= multiply({.rows = queries.count, .columns = keys.count, .inner = tiles_.width},
                            query, key, scores_, AttentionTiles::kKeys, tiles_.scale, false);
  }

  // Scores of query `i` become weights, zero for those that it does not see. Returns what sums
  // made before are multiplied by.
  float weigh(std::size_t i, std::size_t seen, const TokenRange& keys) {
    float* const row = scores_ + i * AttentionTiles::kKeys;
    const float largest = largest_score(row, seen, largest_[i]);
    const float sum = exponentiate(row, seen, largest);
    std::fill(row + seen, row + keys.count, 0.F);
    const float kept = keys.first == 0 ? 0.F : exponential(largest_[i] - largest);
    sums_[i] = sums_[i] * kept + sum;
    largest_[i] = largest;
    return kept;
  }

  // output += the weights times the values.
  void add_values(std::size_t n, std::size_t head, const TokenRange& queries,
                  const TokenRange& keys, const DropoutMask& mask, const RowSums& output) {
    const float* weights = scores_;
    if (tiles_.geometry.dropout > 0) {
      for (std::size_t i = 0; i < queries.count; ++i) {
        drop_weights(mask, tiles_.saved(n, head) + queries.first + i, keys,
                     scores_ + i * AttentionTiles::kKeys, dropped_ + i * AttentionTiles::kKeys);
      }
      weights = dropped_;
    }
    const std::size_t stride = tiles_.x_rows.stride;
    const Matrix value =
        rows_for_products(x_ + tiles_.value(n, head / tiles_.share) + keys.first * stride, stride,
                          keys, tiles_.width, key_room_);
    had_memory_ &= multiply({.rows = queries.count, .columns = tiles_.width, .inner = keys.count},
                            {.numbers = weights, .stride = AttentionTiles::kKeys}, value,
                            output.numbers, output.stride, 1.F, true);
  }

  const AttentionTiles& tiles_;
  const T* x_;
  T* y_;
  float* saved_;
  float* scores_;
  float* dropped_;
  float* largest_;
  float* sums_;
  float* query_room_;
  float* key_room_;
  float* output_room_;
  bool had_memory_ = true;
};

}  // namespace

std::unique_ptr<Kernel> make_kernel(const Machine& machine, const AttentionForward& op) {
  const AttentionTiles own{machine.layout, op.geometry};
  const std::size_t room = forward_room(machine.layout, op.geometry);
  const auto attend = [tiles = own, room](auto elements, const auto& operands,
                                          const auto& arguments) {
    using T = typename decltype(elements)::Type;
    const DropoutMask mask = attention_mask(tiles.geometry, *arguments.context);
    const std::size_t heads = tiles.geometry.heads.heads;
    const std::size_t each =
        (tiles.tokens + AttentionTiles::kQueries - 1) / AttentionTiles::kQueries;
    const T* const x = elements(operands.in.x);
    T* const y = elements(operands.out.y);
    float* const saved = floats(operands.out.saved);
    float* const rooms = floats(arguments.workspace);
    bool had_memory = true;
#pragma omp parallel for schedule(dynamic) reduction(&& : had_memory)
    for (std::size_t i = 0; i < tiles.geometry.x.batch * heads * each; ++i) {
      const std::size_t first = i % each * AttentionTiles::kQueries;
      const auto thread = static_cast<std::size_t>(omp_get_thread_num());
      QueryTile<T> tile{tiles, x, y, saved, rooms + thread * room};
      const TokenRange queries{first, std::min(AttentionTiles::kQueries, tiles.tokens - first)};
      had_memory = tile.compute(i / each / heads, i / each % heads, queries, mask) && had_memory;
    }
    expect_products(had_memory);
    for (std::size_t row = 0; row < tiles.y_rows.count; ++row) {
      tiles.y_rows.zero_padding(y + row * tiles.y_rows.stride);
    }
  };
  return element_kernel_of(machine, op, attend);
}

um::Bytes workspace_of(const Machine& machine, const AttentionForward& op) {
  return float_bytes(machine.threads * forward_room(machine.layout, op.geometry));
}

um::Bytes saved_bytes(const Machine& /*machine*/, const AttentionForward& op) {
  return float_bytes(op.geometry.saved_count());
}

}  // namespace spillway::host
