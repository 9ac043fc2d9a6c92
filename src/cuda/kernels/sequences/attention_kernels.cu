#include <algorithm>
#include <cmath>
#include <cstddef>
#include <optional>
#include <string>
#include <utility>

#include "src/cuda/kernels/kernels.h"
#include "src/cuda/kernels/launch.cuh"
#include "src/cuda/kernels/sequences/attention_kernels.h"
#include "src/cuda/layout/step_numbers.h"
#include "src/ops/dropout_mask.h"
#include "um/error.h"

namespace spillway::cuda {

static_assert(kAttentionTile == kWarp);

/// A step's dropout mask of an attention's weights; kernels read it if AttentionShape::drops.
class AttentionMask {
 public:
  AttentionMask(const Machine& machine, const AttentionGeometry& geometry) {
    if (geometry.dropout == 0) return;
    mask_.emplace(machine.numbers->add(
        [geometry](const StepContext& context) { return attention_mask(geometry, context); }));
  }

  /// Returns null without dropout.
  [[nodiscard]] const DropoutMask* get() const { return mask_ ? mask_->get() : nullptr; }

 private:
  std::optional<StepNumber<DropoutMask>> mask_;
};

/// The tokens of a block.
struct AttentionPlace {
  std::size_t n;
  std::size_t head;
  std::size_t first;  ///< token of the block's first warp
};
__device__ inline AttentionPlace attention_place(const AttentionShape& shape, std::size_t block,
                                                 std::size_t all_heads) {
  const std::size_t tile = block % shape.tiles();
  const std::size_t head = block / shape.tiles();
  return {.n = head / all_heads, .head = head % all_heads, .first = tile * kAttentionWarps};
}

/// Copies `count` rows of a head, `stride` elements apart, into shared memory for `room` rows; the
/// rest becomes zero. All threads of a block must call it.
template <class T>
__device__ void load_rows(const AttentionShape& shape, const T* rows, std::size_t stride,
                          std::size_t count, std::size_t room, float* shared) {
  for (std::size_t i = threadIdx.x; i < room * shape.width; i += blockDim.x) {
    const std::size_t row = i / shape.width;
    const std::size_t c = i % shape.width;
    shared[row * shape.shared_stride() + c] = row < count ? load_one(rows, row * stride + c) : 0.F;
  }
}

/// Rows of a head, `stride` elements apart, and their destination in shared memory.
template <class T>
struct RowsToLoad {
  const T* rows;
  std::size_t stride;
  float* shared;
};

/// Loads two sets of rows, with barriers before and after: all threads have finished with the old
/// contents, and the new ones are complete on return.
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

/// Returns `weight` after dropout.
__device__ inline float dropped(const DropoutMask& mask, std::size_t query, std::size_t key,
                                float weight) {
  const PhiloxCounter words = mask.words(query, key / DropoutMask::kGroup);
  return mask.apply(words[key % DropoutMask::kGroup], weight);
}

namespace {

// Running sums of one query, over the keys visited so far.
struct Sums {
  float largest = -INFINITY;
  float weights = 0.F;
  float values[kLaneChannels] = {};  // for the lane's channels: lane, lane + 32, ...
};

// Adds a tile of keys, one per lane; the warp's query may not see a key. Earlier sums are rescaled
// to the largest score so far (Dao et al., 2022, algorithm 1).
__device__ void add_tile(const AttentionShape& shape, const float* query, const float* keys,
                         const float* values, bool is_seen, const DropoutMask& mask,
                         std::size_t place, std::size_t key, Sums& sums) {
  const std::size_t lane = threadIdx.x % kWarp;
  const float score =
      is_seen ? shape.scale * dot(query, keys + lane * shape.shared_stride(), shape.width)
              : -INFINITY;
  const float largest = fmaxf(sums.largest, warp_max(score));
  const float kept = sums.largest == -INFINITY ? 0.F : expf(sums.largest - largest);
  const float weight = is_seen ? expf(score - largest) : 0.F;
  sums.weights = sums.weights * kept + warp_sum(weight);
  sums.largest = largest;
  const float used = shape.drops ? dropped(mask, place, key, weight) : weight;
  for (std::size_t i = 0; i < kLaneChannels; ++i) sums.values[i] *= kept;
  for (unsigned j = 0; j < kWarp; ++j) {
    const float other = __shfl_sync(kAllLanes, used, j);
    for (std::size_t i = 0; i < kLaneChannels; ++i) {
      const std::size_t c = lane + i * kWarp;
      if (c < shape.width) sums.values[i] += other * values[j * shape.shared_stride() + c];
    }
  }
}

template <class T>
__device__ void store_sums(const AttentionShape& shape, const Sums& sums, T* to) {
  for (std::size_t i = 0; i < kLaneChannels; ++i) {
    const std::size_t c = threadIdx.x % kWarp + i * kWarp;
    if (c < shape.width) store_one(to, c, sums.values[i] / sums.weights);
  }
}

// Each warp handles a query; the block visits all keys that any of its queries sees.
template <class T>
__global__ void attend(const T* x, T* y, float* saved, const DropoutMask* step_mask,
                       AttentionShape shape) {
  const DropoutMask mask = shape.drops ? *step_mask : DropoutMask{};
  const std::size_t lane = threadIdx.x % kWarp;
  const std::size_t warp = threadIdx.x / kWarp;
  const std::size_t stride = shape.x.stride;
  float* const keys = shared_floats();
  float* const values = keys + kAttentionTile * shape.shared_stride();
  float* const queries = values + kAttentionTile * shape.shared_stride();
  for (std::size_t block = blockIdx.x; block < shape.blocks(shape.heads); block += gridDim.x) {
    const AttentionPlace at = attention_place(shape, block, shape.heads);
    const std::size_t count =
        min(static_cast<std::size_t>(kAttentionWarps), shape.x.tokens - at.first);
    const std::size_t token = at.first + warp;
    const std::size_t end = shape.is_causal ? at.first + count : shape.x.tokens;
    const std::size_t kv_head = at.head / shape.share();
    const std::size_t place = shape.place(at.n, at.head, token);
    __syncthreads();  // the previous block has finished with shared memory
    load_rows(shape, x + shape.query(at.n, at.head, at.first), stride, count, kAttentionWarps,
              queries);
    Sums sums;
    for (std::size_t first = 0; first < end; first += kAttentionTile) {
      load_both<T>(shape, {x + shape.key(at.n, kv_head, first), stride, keys},
                   {x + shape.value(at.n, kv_head, first), stride, values},
                   min(kAttentionTile, end - first), kAttentionTile);
      const std::size_t key = first + lane;
      const bool is_seen = key < end && (!shape.is_causal || key <= token);
      add_tile(shape, queries + warp * shape.shared_stride(), keys, values, is_seen, mask, place,
               key, sums);
    }
    if (warp >= count) continue;
    if (lane == 0) saved[place] = sums.largest + logf(sums.weights);
    store_sums(shape, sums, y + shape.output(at.n, at.head, token));
  }
}

template <class T>
__global__ void zero_padding(T* y, TokenMatrix m) {
  const std::size_t padding = m.stride - m.channels;
  for (std::size_t i = first_item(); i < m.rows * padding; i += item_stride()) {
    store_one(y, i / padding * m.stride + m.channels + i % padding, 0.F);
  }
}

// With P = exp(S - log-sum-exp), P' = P after dropout, and D = row sums of dO O: dV = P'^T dO, dP =
// dO V^T after dropout, dS = P (dP - D), dQ = dS K scale, dK = dS^T Q scale (Dao et al., 2022,
// algorithm 4).

// The tensors that backward reads.
template <class T>
struct Tensors {
  const T* x;
  const T* y;
  const T* dy;
  const float* saved;
  const float* means;  // D, one per query
};

// One warp per query and head.
template <class T>
__global__ void find_means(Tensors<T> in, float* means, AttentionShape shape) {
  const std::size_t lane = threadIdx.x % kWarp;
  const std::size_t tokens = shape.x.tokens;
  const std::size_t count = shape.samples() * shape.heads * tokens;
  for (std::size_t place = first_item() / kWarp; place < count; place += item_stride() / kWarp) {
    const std::size_t head = place / tokens % shape.heads;
    const std::size_t at = shape.output(place / tokens / shape.heads, head, place % tokens);
    float sum = 0.F;
    for (std::size_t c = lane; c < shape.width; c += kWarp) {
      sum += load_one(in.y, at + c) * load_one(in.dy, at + c);
    }
    sum = warp_sum(sum);
    if (lane == 0) means[place] = sum;
  }
}

// A query's weight of a key after dropout, and the gradient of its score.
struct Slope {
  float used = 0.F;
  float slope = 0.F;
};
__device__ Slope slope_of(const AttentionShape& shape, const DropoutMask& mask, float score,
                          float dvalue, float logarithm, float mean, std::size_t place,
                          std::size_t key) {
  const float weight = expf(score - logarithm);
  Slope slope{.used = weight, .slope = 0.F};
  if (shape.drops) {
    slope.used = dropped(mask, place, key, weight);
    dvalue = dropped(mask, place, key, dvalue);
  }
  slope.slope = weight * (dvalue - mean);
  return slope;
}

// sums[i] += each lane's number times its row's channels.
__device__ void add_products(const AttentionShape& shape, float number, const float* rows,
                             float* sums) {
  const std::size_t lane = threadIdx.x % kWarp;
  for (unsigned j = 0; j < kWarp; ++j) {
    const float other = __shfl_sync(kAllLanes, number, j);
    for (std::size_t i = 0; i < kLaneChannels; ++i) {
      const std::size_t c = lane + i * kWarp;
      if (c < shape.width) sums[i] += other * rows[j * shape.shared_stride() + c];
    }
  }
}

template <class T>
__device__ void store_channels(const AttentionShape& shape, const float* sums, float scale, T* to) {
  for (std::size_t i = 0; i < kLaneChannels; ++i) {
    const std::size_t c = threadIdx.x % kWarp + i * kWarp;
    if (c < shape.width) store_one(to, c, scale * sums[i]);
  }
}

// A block's shared memory: two tiles of tokens, and two tokens per warp.
struct Shared {
  __device__ explicit Shared(const AttentionShape& shape)
      : first{shared_floats()},
        second{first + kAttentionTile * shape.shared_stride()},
        own_first{second + kAttentionTile * shape.shared_stride()},
        own_second{own_first + kAttentionWarps * shape.shared_stride()} {}

  // For the lane's token and the warp's token. One is the query, at `place`, the other is the key.
  template <class T>
  __device__ Slope slope(const AttentionShape& shape, const DropoutMask& mask, const Tensors<T>& in,
                         std::size_t place, std::size_t key) const {
    const std::size_t lane = threadIdx.x % kWarp * shape.shared_stride();
    const std::size_t warp = threadIdx.x / kWarp * shape.shared_stride();
    const float score = shape.scale * dot(first + lane, own_first + warp, shape.width);
    const float dvalue = dot(second + lane, own_second + warp, shape.width);
    return slope_of(shape, mask, score, dvalue, in.saved[place], in.means[place], place, key);
  }

  float* first;
  float* second;
  float* own_first;
  float* own_second;
};

// Each warp handles a query, and its lanes the keys of a tile.
template <class T>
__global__ void differentiate_queries(Tensors<T> in, T* dx, const DropoutMask* step_mask,
                                      AttentionShape shape) {
  const DropoutMask mask = shape.drops ? *step_mask : DropoutMask{};
  const std::size_t lane = threadIdx.x % kWarp;
  const std::size_t warp = threadIdx.x / kWarp;
  const std::size_t stride = shape.x.stride;
  const Shared shared{shape};
  for (std::size_t block = blockIdx.x; block < shape.blocks(shape.heads); block += gridDim.x) {
    const AttentionPlace at = attention_place(shape, block, shape.heads);
    const std::size_t count =
        min(static_cast<std::size_t>(kAttentionWarps), shape.x.tokens - at.first);
    const std::size_t token = at.first + warp;
    const std::size_t end = shape.is_causal ? at.first + count : shape.x.tokens;
    const std::size_t kv_head = at.head / shape.share();
    load_both<T>(shape, {in.x + shape.query(at.n, at.head, at.first), stride, shared.own_first},
                 {in.dy + shape.output(at.n, at.head, at.first), shape.y.stride, shared.own_second},
                 count, kAttentionWarps);
    float sums[kLaneChannels] = {};
    for (std::size_t first = 0; first < end; first += kAttentionTile) {
      load_both<T>(shape, {in.x + shape.key(at.n, kv_head, first), stride, shared.first},
                   {in.x + shape.value(at.n, kv_head, first), stride, shared.second},
                   min(kAttentionTile, end - first), kAttentionTile);
      const std::size_t key = first + lane;
      Slope of;
      if (warp < count && key < end && (!shape.is_causal || key <= token)) {
        of = shared.slope(shape, mask, in, shape.place(at.n, at.head, token), key);
      }
      add_products(shape, of.slope, shared.first, sums);
    }
    if (warp < count) {
      store_channels(shape, sums, shape.scale, dx + shape.query(at.n, at.head, token));
    }
  }
}

// Each warp handles a key, and its lanes the queries of a tile, for one query head after the other.
template <class T>
__global__ void differentiate_keys(Tensors<T> in, T* dx, const DropoutMask* step_mask,
                                   AttentionShape shape) {
  const DropoutMask mask = shape.drops ? *step_mask : DropoutMask{};
  const std::size_t lane = threadIdx.x % kWarp;
  const std::size_t warp = threadIdx.x / kWarp;
  const std::size_t tokens = shape.x.tokens;
  const Shared shared{shape};
  for (std::size_t block = blockIdx.x; block < shape.blocks(shape.kv_heads); block += gridDim.x) {
    const AttentionPlace at = attention_place(shape, block, shape.kv_heads);
    const std::size_t count = min(static_cast<std::size_t>(kAttentionWarps), tokens - at.first);
    const std::size_t token = at.first + warp;
    load_both<T>(shape,
                 {in.x + shape.key(at.n, at.head, at.first), shape.x.stride, shared.own_first},
                 {in.x + shape.value(at.n, at.head, at.first), shape.x.stride, shared.own_second},
                 count, kAttentionWarps);
    float dkey[kLaneChannels] = {};
    float dvalue[kLaneChannels] = {};
    const std::size_t begin = shape.is_causal ? at.first : 0;  // earlier queries see no key here
    const std::size_t each = (tokens - begin + kAttentionTile - 1) / kAttentionTile;
    for (std::size_t i = 0; i < shape.share() * each; ++i) {
      const std::size_t head = at.head * shape.share() + i / each;
      const std::size_t first = begin + i % each * kAttentionTile;
      load_both<T>(shape, {in.x + shape.query(at.n, head, first), shape.x.stride, shared.first},
                   {in.dy + shape.output(at.n, head, first), shape.y.stride, shared.second},
                   min(kAttentionTile, tokens - first), kAttentionTile);
      const std::size_t query = first + lane;
      Slope of;
      if (warp < count && query < tokens && (!shape.is_causal || token <= query)) {
        of = shared.slope(shape, mask, in, shape.place(at.n, head, query), token);
      }
      add_products(shape, of.slope, shared.first, dkey);
      add_products(shape, of.used, shared.second, dvalue);
    }
    if (warp >= count) continue;
    store_channels(shape, dkey, shape.scale, dx + shape.key(at.n, at.head, token));
    store_channels(shape, dvalue, 1.F, dx + shape.value(at.n, at.head, token));
  }
}

template <class T>
__global__ void zero_gradient_padding(T* dx, TokenMatrix m) {
  const std::size_t padding = m.stride - m.channels;
  for (std::size_t i = first_item(); i < m.rows * padding; i += item_stride()) {
    store_one(dx, i / padding * m.stride + m.channels + i % padding, 0.F);
  }
}

Grid grid_of(const AttentionShape& shape, std::size_t all_heads) {
  return {.blocks = dim3{static_cast<unsigned>(std::min(shape.blocks(all_heads), kMaxBlocks))},
          .threads = dim3{kAttentionWarps * kWarp},
          .shared_bytes = shape.shared_bytes()};
}

}  // namespace

AttentionShape attention_shape(const AttentionGeometry& geometry) {
  const std::size_t width = geometry.heads.width(geometry.x);
  if (width > kWidestHead) {
    throw um::Error{"attention's heads of " + std::to_string(width) +
                    " numbers are too wide for a GPU; it takes up to " +
                    std::to_string(kWidestHead)};
  }
  return {.x = token_matrix(geometry.x),
          .y = token_matrix(geometry.y()),
          .heads = geometry.heads.heads,
          .kv_heads = geometry.heads.kv_heads,
          .width = width,
          .scale = 1.F / std::sqrt(static_cast<float>(width)),
          .is_causal = geometry.is_causal,
          .drops = geometry.dropout > 0};
}

std::unique_ptr<Kernel> make_kernel(const Machine& machine, const AttentionForward& op) {
  auto body = [machine, shape = attention_shape(op.geometry),
               mask = AttentionMask{machine, op.geometry}](const auto& operands) {
    with_element(machine.precision, [&]<class T>(T) {
      const std::size_t blocks = std::min(shape.blocks(shape.heads), kMaxBlocks);
      T* const y = tensor<T>(operands.out.y);
      enqueue(machine.stream,
              {.blocks = dim3{static_cast<unsigned>(blocks)},
               .threads = dim3{kAttentionWarps * kWarp},
               .shared_bytes = shape.shared_bytes()},
              attend<T>, tensor<const T>(operands.in.x), y, tensor<float>(operands.out.saved),
              mask.get(), shape);
      launch(machine.stream, shape.y.rows * (shape.y.stride - shape.y.channels), zero_padding<T>, y,
             shape.y);
    });
  };
  return kernel_of(op, std::move(body));
}

um::Bytes workspace_of(const Machine& /*machine*/, const AttentionForward& /*op*/) { return {}; }

um::Bytes saved_bytes(const Machine& /*machine*/, const AttentionForward& op) {
  return float_bytes(op.geometry.saved_count());
}

std::unique_ptr<Kernel> make_kernel(const Machine& machine, const AttentionBackward& op) {
  auto body = [machine, shape = attention_shape(op.geometry),
               mask = AttentionMask{machine, op.geometry}](const auto& operands,
                                                           const auto& arguments) {
    with_element(machine.precision, [&]<class T>(T) {
      float* const means = tensor<float>(arguments.workspace);
      T* const dx = tensor<T>(operands.out.dx);
      const Tensors<T> in{.x = tensor<const T>(operands.in.x),
                          .y = tensor<const T>(operands.in.y),
                          .dy = tensor<const T>(operands.in.dy),
                          .saved = tensor<const float>(operands.in.saved),
                          .means = means};
      const std::size_t queries = shape.samples() * shape.heads * shape.x.tokens;
      launch(machine.stream, queries * kWarp, find_means<T>, in, means, shape);
      enqueue(machine.stream, grid_of(shape, shape.heads), differentiate_queries<T>, in, dx,
              mask.get(), shape);
      enqueue(machine.stream, grid_of(shape, shape.kv_heads), differentiate_keys<T>, in, dx,
              mask.get(), shape);
      launch(machine.stream, shape.x.rows * (shape.x.stride - shape.x.channels),
             zero_gradient_padding<T>, dx, shape.x);
    });
  };
  return kernel_of(op, std::move(body));
}

um::Bytes workspace_of(const Machine& /*machine*/, const AttentionBackward& op) {
  return float_bytes(op.geometry.saved_count());
}

}  // namespace spillway::cuda
