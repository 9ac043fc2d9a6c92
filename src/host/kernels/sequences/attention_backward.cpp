#include <omp.h>

#include <algorithm>

#include "src/host/kernels/kernels.h"
#include "src/host/kernels/sequences/attention_tiles.h"
#include "src/host/kernels/sequences/exponential.h"
#include "um/machine/mapping.h"

namespace spillway::host {
namespace {

// Scores become weights, exp(score - logarithm).
SPILLWAY_WIDE void weigh_scores(float* scores, std::size_t count, float logarithm) {
#pragma omp simd
  for (std::size_t j = 0; j < count; ++j) scores[j] = exponential(scores[j] - logarithm);
}

// Slopes of weights become those of scores.
SPILLWAY_WIDE void slope_scores(const float* weights, float mean, float* slopes,
                                std::size_t count) {
#pragma omp simd
  for (std::size_t j = 0; j < count; ++j) slopes[j] = weights[j] * (slopes[j] - mean);
}

// A thread's room: tiles of weights, of weights as dropped, and of slopes, and a number for each
// query; with bfloat16 also tiles of queries, of keys, of values, and of gradients of the output
// and of queries, and gradients of all keys and values of a head.
std::size_t backward_room(const Layout& layout, const AttentionGeometry& geometry) {
  constexpr std::size_t kRoom = 3 * AttentionTiles::kTile + AttentionTiles::kQueries;
  const std::size_t rows = 5 * AttentionTiles::kQueries + 2 * geometry.x.image.height;
  const std::size_t width = geometry.heads.width(geometry.x);
  return AttentionTiles::whole_lines(kRoom + (layout.is_bf16() ? rows * width : 0));
}

// The tensors that attention reads on the way back, and writes.
template <class T>
struct BackwardTensors {
  const T* x;
  const T* y;
  const T* dy;
  const float* saved;
  T* dx;
};

// The gradients of one key head and of the heads that it serves (Dao et al., 2022, algorithm 4).
// With P = exp(S - log-sum-exp), P' what dropout left of it, and D = rows' sums of dO O: dV = P'^T
// dO, dP = dO V^T as dropped, dS = P (dP - D), dQ = dS K scale, dK = dS^T Q scale.
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

  // Returns false when there was no memory for products.
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
