#include <omp.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>

#include "src/host/kernels/kernels.h"
#include "src/host/kernels/sequences/token_rows.h"
#include "src/host/layout/host_kernel.h"
#include "src/host/layout/onednn.h"
#include "src/ops/dropout_mask.h"
#include "src/ops/tensor.h"
#include "um/machine/wide.h"

namespace spillway::host {
namespace {

/// A range of tokens.
struct TokenRange {
  std::size_t first;
  std::size_t count;

  [[nodiscard]] std::size_t end() const { return first + count; }
};

/// Returns the rows of a head, `width` wide, in place.
Matrix rows_for_products(const float* rows, std::size_t stride, const TokenRange& /*tokens*/,
                         std::size_t /*width*/, float* /*room*/) {
  return {.numbers = rows, .stride = stride};
}
/// Returns the rows of a head as floats, converted from bfloat16 into `room`, which has
/// tokens.count x width floats.
Matrix rows_for_products(const Bfloat16* rows, std::size_t stride, const TokenRange& tokens,
                         std::size_t width, float* room) {
  for (std::size_t i = 0; i < tokens.count; ++i) {
    const Bfloat16* const row = rows + i * stride;
    for (std::size_t c = 0; c < width; ++c) room[i * width + c] = row[c];
  }
  return {.numbers = room, .stride = width};
}

/// Buffer for sums of a head's rows, `stride` floats apart.
struct RowSums {
  float* numbers;
  std::size_t stride;
};
/// Sums in the tensor itself.
RowSums row_sums(float* rows, std::size_t stride, std::size_t /*width*/, float* /*room*/) {
  return {.numbers = rows, .stride = stride};
}
/// Sums in `room`; put_rows() then writes them to the rows of bfloat16.
RowSums row_sums(Bfloat16* /*rows*/, std::size_t /*stride*/, std::size_t width, float* room) {
  return {.numbers = room, .stride = width};
}
void put_rows(const RowSums& /*sums*/, std::size_t /*count*/, std::size_t /*width*/,
              const float* /*rows*/, std::size_t /*stride*/) {}
void put_rows(const RowSums& sums, std::size_t count, std::size_t width, Bfloat16* rows,
              std::size_t stride) {
  for (std::size_t i = 0; i < count; ++i) {
    const float* const sum = sums.numbers + i * sums.stride;
    for (std::size_t c = 0; c < width; ++c) rows[i * stride + c] = sum[c];
  }
}

/// Geometry of attention's score matrix, cut into tiles of queries by keys. Each thread works on
/// one tile at a time; no result depends on the number of threads.
struct AttentionTiles {
  static constexpr std::size_t kQueries = 128;
  static constexpr std::size_t kKeys = 128;
  /// Floats per tile.
  static constexpr std::size_t kTile = kQueries * kKeys;
  /// Rounds up to whole cache lines, so that threads share none.
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

  /// Element offsets of the first token of sample `n`, for each tensor that a head uses.
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

  /// Returns the end of the keys that queries before `query_end` see.
  [[nodiscard]] std::size_t key_end(std::size_t query_end) const {
    return geometry.is_causal ? query_end : tokens;
  }
  /// Returns how many of `count` keys, beginning with `first`, `query` sees.
  [[nodiscard]] std::size_t seen(std::size_t query, std::size_t first, std::size_t count) const {
    if (!geometry.is_causal) return count;
    return query < first ? 0 : std::min(count, query - first + 1);
  }

  AttentionGeometry geometry;
  std::size_t tokens;
  std::size_t width;  ///< of a head
  std::size_t share;  ///< query heads per key head
  TokenRows x_rows;
  TokenRows y_rows;
  float scale;
};

/// Multiplies the weights of one query for `keys.count` keys by the factors of dropout. `pixel` is
/// the query's index in attention_mask().
void drop_weights(const DropoutMask& mask, std::size_t pixel, const TokenRange& keys,
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

// Replaces each number by exp(number - most). Returns the sum.
SPILLWAY_WIDE float exponentiate(float* numbers, std::size_t count, float most) {
  float sum = 0;
#pragma omp simd reduction(+ : sum)
  for (std::size_t j = 0; j < count; ++j) {
    numbers[j] = exponential(numbers[j] - most);
    sum += numbers[j];
  }
  return sum;
}

// Returns the maximum of the numbers and `most`.
SPILLWAY_WIDE float largest_score(const float* numbers, std::size_t count, float most) {
#pragma omp simd reduction(max : most)
  for (std::size_t j = 0; j < count; ++j) most = numbers[j] > most ? numbers[j] : most;
  return most;
}

// Floats of a thread's buffers: a tile of scores, a tile of dropped weights, and per query the
// largest score so far and the sum of its weights. With bfloat16 also tiles of queries, of keys or
// values, and of the output.
std::size_t forward_room(const Layout& layout, const AttentionGeometry& geometry) {
  constexpr std::size_t kRoom = 2 * AttentionTiles::kTile + 2 * AttentionTiles::kQueries;
  const std::size_t width = geometry.heads.width(geometry.x);
  const std::size_t rows = layout.is_bf16() ? 3 * AttentionTiles::kQueries : 0;
  return AttentionTiles::whole_lines(kRoom + rows * width);
}

// Computes one head's output for a range of queries, one tile of keys after the other (Dao et al.,
// 2022, algorithm 1). Each tile rescales earlier sums to the largest score so far.
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

  // Returns false if there was not enough memory for products.
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

  // Converts scores of query `i` to weights; keys that it does not see get zero. Returns the factor
  // by which earlier sums must be multiplied.
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

  // output += weights * values.
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

// Converts scores to weights: exp(score - logarithm).
SPILLWAY_WIDE void weigh_scores(float* scores, std::size_t count, float logarithm) {
#pragma omp simd
  for (std::size_t j = 0; j < count; ++j) scores[j] = exponential(scores[j] - logarithm);
}

// Converts gradients of weights to gradients of scores.
SPILLWAY_WIDE void slope_scores(const float* weights, float mean, float* slopes,
                                std::size_t count) {
#pragma omp simd
  for (std::size_t j = 0; j < count; ++j) slopes[j] = weights[j] * (slopes[j] - mean);
}

// Floats of a thread's buffers: tiles of weights, of dropped weights and of gradients, and one
// number per query. With bfloat16 also tiles of queries, keys, values, and gradients of output and
// queries, plus gradients of all keys and values of a head.
std::size_t backward_room(const Layout& layout, const AttentionGeometry& geometry) {
  constexpr std::size_t kRoom = 3 * AttentionTiles::kTile + AttentionTiles::kQueries;
  const std::size_t rows = 5 * AttentionTiles::kQueries + 2 * geometry.x.image.height;
  const std::size_t width = geometry.heads.width(geometry.x);
  return AttentionTiles::whole_lines(kRoom + (layout.is_bf16() ? rows * width : 0));
}

// The tensors that backward reads and writes.
template <class T>
struct BackwardTensors {
  const T* x;
  const T* y;
  const T* dy;
  const float* saved;
  T* dx;
};

// Computes the gradients of one key head and of its query heads (Dao et al., 2022, algorithm 4).
// With P = exp(S - log-sum-exp), P' = P after dropout, and D = row sums of dO O: dV = P'^T dO, dP =
// dO V^T after dropout, dS = P (dP - D), dQ = dS K scale, dK = dS^T Q scale.
template <class T>
class KeyHead {
 public:
  KeyHead(const AttentionTiles& tiles, const BackwardTensors<T>& tensors, float* room)
      : tiles_{tiles},
        at_{tensors},
        weights_{room},
        dropped_{room + AttentionTiles::kTile},
        slopes_{dropped_ + AttentionTiles::kTile},
        means_{slopes_ + AttentionTiles::kTile},
        query_room_{means_ + AttentionTiles::kQueries},
        key_room_{query_room_ + AttentionTiles::kQueries * tiles.width},
        value_room_{key_room_ + AttentionTiles::kKeys * tiles.width},
        dy_room_{value_room_ + AttentionTiles::kKeys * tiles.width},
        dquery_room_{dy_room_ + AttentionTiles::kQueries * tiles.width},
        dkey_room_{dquery_room_ + AttentionTiles::kQueries * tiles.width},
        dvalue_room_{dkey_room_ + tiles.tokens * tiles.width} {}

  // Returns false if there was not enough memory for products.
  [[nodiscard]] bool add(std::size_t n, std::size_t kv_head, const DropoutMask& mask) {
    const std::size_t stride = tiles_.x_rows.stride;
    T* const dkey = at_.dx + tiles_.key(n, kv_head);
    T* const dvalue = at_.dx + tiles_.value(n, kv_head);
    dkeys_ = row_sums(dkey, stride, tiles_.width, dkey_room_);
    dvalues_ = row_sums(dvalue, stride, tiles_.width, dvalue_room_);
    clear(dkeys_, tiles_.tokens);
    clear(dvalues_, tiles_.tokens);
    for (std::size_t i = 0; i < tiles_.share; ++i) {
      const std::size_t head = kv_head * tiles_.share + i;
      for (std::size_t first = 0; first < tiles_.tokens; first += AttentionTiles::kQueries) {
        add_queries(n, head, kv_head,
                    {first, std::min(AttentionTiles::kQueries, tiles_.tokens - first)}, mask);
      }
    }
    put_rows(dkeys_, tiles_.tokens, tiles_.width, dkey, stride);
    put_rows(dvalues_, tiles_.tokens, tiles_.width, dvalue, stride);
    return had_memory_;
  }

 private:
  struct Tile {
    std::size_t n;
    std::size_t head;
    std::size_t kv_head;
    TokenRange queries;
    TokenRange keys;

    // Sizes of the products of queries, keys and a head's width, in three orders.
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

  // Zeroes `count` rows.
  void clear(const RowSums& sums, std::size_t count) const {
    for (std::size_t i = 0; i < count; ++i) {
      std::fill_n(sums.numbers + i * sums.stride, tiles_.width, 0.F);
    }
  }

  void add_queries(std::size_t n, std::size_t head, std::size_t kv_head, const TokenRange& queries,
                   const DropoutMask& mask) {
    const std::size_t stride = tiles_.x_rows.stride;
    const std::size_t begin = tiles_.query(n, head) + queries.first * stride;
    find_means(n, head, queries);
    query_ = rows_for_products(at_.x + begin, stride, queries, tiles_.width, query_room_);
    dy_ = rows_for_products(at_.dy + tiles_.output(n, head) + queries.first * tiles_.y_rows.stride,
                            tiles_.y_rows.stride, queries, tiles_.width, dy_room_);
    dqueries_ = row_sums(at_.dx + begin, stride, tiles_.width, dquery_room_);
    clear(dqueries_, queries.count);
    const std::size_t end = tiles_.key_end(queries.end());
    for (std::size_t key = 0; key < end; key += AttentionTiles::kKeys) {
      const TokenRange keys{key, std::min(AttentionTiles::kKeys, end - key)};
      add_tile({.n = n, .head = head, .kv_head = kv_head, .queries = queries, .keys = keys}, mask);
    }
    put_rows(dqueries_, queries.count, tiles_.width, at_.dx + begin, stride);
  }

  void find_means(std::size_t n, std::size_t head, const TokenRange& queries) {
    const std::size_t stride = tiles_.y_rows.stride;
    const std::size_t begin = tiles_.output(n, head) + queries.first * stride;
    for (std::size_t i = 0; i < queries.count; ++i) {
      const T* const y = at_.y + begin + i * stride;
      const T* const dy = at_.dy + begin + i * stride;
      float sum = 0;
#pragma omp simd reduction(+ : sum)
      for (std::size_t c = 0; c < tiles_.width; ++c) sum += y[c] * dy[c];
      means_[i] = sum;
    }
  }

  void add_tile(const Tile& tile, const DropoutMask& mask) {
    constexpr std::size_t kStride = AttentionTiles::kKeys;
    const std::size_t stride = tiles_.x_rows.stride;
    const std::size_t first = tile.keys.first;
    const Matrix key = rows_for_products(at_.x + tiles_.key(tile.n, tile.kv_head) + first * stride,
                                         stride, tile.keys, tiles_.width, key_room_);
    const Matrix value =
        rows_for_products(at_.x + tiles_.value(tile.n, tile.kv_head) + first * stride, stride,
                          tile.keys, tiles_.width, value_room_);
    multiply_into({weights_, kStride}, tile.of_scores(tiles_.width), query_, transposed(key),
                  tiles_.scale, false);
    multiply_into({slopes_, kStride}, tile.of_scores(tiles_.width), dy_, transposed(value), 1.F,
                  false);
    const Matrix dropped{.numbers = differentiate(tile, mask), .stride = kStride};
    const Matrix slopes{.numbers = slopes_, .stride = kStride};
    multiply_into(from(dvalues_, first), tile.of_keys(tiles_.width), transposed(dropped), dy_, 1.F,
                  true);
    multiply_into(dqueries_, tile.of_queries(tiles_.width), slopes, key, tiles_.scale, true);
    multiply_into(from(dkeys_, first), tile.of_keys(tiles_.width), transposed(slopes), query_,
                  tiles_.scale, true);
  }

  static Matrix transposed(Matrix matrix) {
    matrix.transposed = true;
    return matrix;
  }
  static RowSums from(const RowSums& sums, std::size_t row) {
    return {.numbers = sums.numbers + row * sums.stride, .stride = sums.stride};
  }
  void multiply_into(const RowSums& c, const ProductSizes& sizes, const Matrix& a, const Matrix& b,
                     float scale, bool adds) {
    had_memory_ &= multiply(sizes, a, b, c.numbers, c.stride, scale, adds);
  }

  // Converts scores to weights, and gradients of weights to gradients of scores. Returns the
  // weights after dropout, as forward multiplied them with the values.
  const float* differentiate(const Tile& tile, const DropoutMask& mask) {
    const bool drops = tiles_.geometry.dropout > 0;
    const std::size_t saved = tiles_.saved(tile.n, tile.head) + tile.queries.first;
    for (std::size_t i = 0; i < tile.queries.count; ++i) {
      const std::size_t row = i * AttentionTiles::kKeys;
      float* const weights = weights_ + row;
      float* const slopes = slopes_ + row;
      const std::size_t seen =
          tiles_.seen(tile.queries.first + i, tile.keys.first, tile.keys.count);
      const float logarithm = at_.saved[saved + i];
      weigh_scores(weights, seen, logarithm);
      std::fill(weights + seen, weights + tile.keys.count, 0.F);
      if (drops) {
        drop_weights(mask, saved + i, tile.keys, slopes, slopes);
        drop_weights(mask, saved + i, tile.keys, weights, dropped_ + row);
      }
      slope_scores(weights, means_[i], slopes, seen);
      std::fill(slopes + seen, slopes + tile.keys.count, 0.F);
    }
    return drops ? dropped_ : weights_;
  }

  const AttentionTiles& tiles_;
  BackwardTensors<T> at_;
  float* weights_;
  float* dropped_;
  float* slopes_;
  float* means_;
  float* query_room_;
  float* key_room_;
  float* value_room_;
  float* dy_room_;
  float* dquery_room_;
  float* dkey_room_;
  float* dvalue_room_;
  Matrix query_{};  // of the tile's queries
  Matrix dy_{};
  RowSums dqueries_{};
  RowSums dkeys_{};  // of all keys
  RowSums dvalues_{};
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

std::unique_ptr<Kernel> make_kernel(const Machine& machine, const AttentionBackward& op) {
  const AttentionTiles own{machine.layout, op.geometry};
  const std::size_t room = backward_room(machine.layout, op.geometry);
  const auto differentiate = [tiles = own, room](auto elements, const auto& operands,
                                                 const auto& arguments) {
    using T = typename decltype(elements)::Type;
    const DropoutMask mask = attention_mask(tiles.geometry, *arguments.context);
    const std::size_t kv_heads = tiles.geometry.heads.kv_heads;
    const BackwardTensors<T> tensors{.x = elements(operands.in.x),
                                     .y = elements(operands.in.y),
                                     .dy = elements(operands.in.dy),
                                     .saved = floats(operands.in.saved),
                                     .dx = elements(operands.out.dx)};
    float* const rooms = floats(arguments.workspace);
    bool had_memory = true;
#pragma omp parallel for schedule(dynamic) reduction(&& : had_memory)
    for (std::size_t i = 0; i < tiles.geometry.x.batch * kv_heads; ++i) {
      const auto thread = static_cast<std::size_t>(omp_get_thread_num());
      KeyHead<T> head{tiles, tensors, rooms + thread * room};
      had_memory = head.add(i / kv_heads, i % kv_heads, mask) && had_memory;
    }
    expect_products(had_memory);
    for (std::size_t row = 0; row < tiles.x_rows.count; ++row) {
      tiles.x_rows.zero_padding(tensors.dx + row * tiles.x_rows.stride);
    }
  };
  return element_kernel_of(machine, op, differentiate);
}

um::Bytes workspace_of(const Machine& machine, const AttentionBackward& op) {
  return float_bytes(machine.threads * backward_room(machine.layout, op.geometry));
}

}  // namespace spillway::host
