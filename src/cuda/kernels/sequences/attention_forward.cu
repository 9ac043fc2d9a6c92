#include <cmath>
#include <string>
#include <utility>

#include "src/cuda/kernels/sequences/attention_tile.cuh"
#include "um/error.h"

namespace spillway::cuda {
namespace {

// Of one query, as far as its keys have been seen.
struct Sums {
  float largest = -INFINITY;
  float weights = 0.F;
  float values[kLaneChannels] = {};  // of the lane's channels: lane, lane + 32, ...
};

// A lane's key of a tile, which the warp's query sees or not. What was summed up before is scaled
// to the largest score that is seen now (Dao et al., 2022, algorithm 1).
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

// A warp has a query; the block goes over all keys that one of its queries sees.
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
    __syncthreads();  // the block before is done with shared memory
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

}  // namespace spillway::cuda
