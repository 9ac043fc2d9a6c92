#pragma once

#include <cuda_bf16.h>

#include <cstddef>
#include <cstdint>

#include "src/cuda/kernels/channel_tile.cuh"

namespace spillway::cuda {

// Kernels that change each row of a matrix separately. Memory limits their speed: many threads
// must read at once, with few registers each. Groups therefore stay in memory format until they are
// computed with, four lanes at a time. Data common to all rows is in shared memory.

/// Half of a group.
struct Quad {
  float lanes[4];
};
inline constexpr int kQuads = kGroupLanes / 4;

/// A group in memory format.
template <class T>
struct RawGroup {
  static constexpr int kWords = kGroupLanes * static_cast<int>(sizeof(T)) / 4;
  std::uint32_t words[kWords];
};

template <class T>
__device__ RawGroup<T> load_raw(const T* tensor, std::size_t i) {
  constexpr int kPacks = RawGroup<T>::kWords / 4;
  RawGroup<T> group;
#pragma unroll
  for (int p = 0; p < kPacks; ++p) {
    const uint4 raw = reinterpret_cast<const uint4*>(tensor)[i * kPacks + p];
    group.words[4 * p] = raw.x;
    group.words[4 * p + 1] = raw.y;
    group.words[4 * p + 2] = raw.z;
    group.words[4 * p + 3] = raw.w;
  }
  return group;
}
template <class T>
__device__ void store_raw(T* tensor, std::size_t i, const RawGroup<T>& group) {
  constexpr int kPacks = RawGroup<T>::kWords / 4;
#pragma unroll
  for (int p = 0; p < kPacks; ++p) {
    reinterpret_cast<uint4*>(tensor)[i * kPacks + p] = make_uint4(
        group.words[4 * p], group.words[4 * p + 1], group.words[4 * p + 2], group.words[4 * p + 3]);
  }
}

__device__ inline Quad get_quad(const RawGroup<float>& group, int q) {
  const std::uint32_t* const words = group.words + 4 * q;
  return {{__uint_as_float(words[0]), __uint_as_float(words[1]), __uint_as_float(words[2]),
           __uint_as_float(words[3])}};
}
__device__ inline Quad get_quad(const RawGroup<__nv_bfloat16>& group, int q) {
  const std::uint32_t low = group.words[2 * q];  // a bfloat16 is the upper half of a float
  const std::uint32_t high = group.words[2 * q + 1];
  return {{__uint_as_float(low << 16U), __uint_as_float(low & 0xFFFF0000U),
           __uint_as_float(high << 16U), __uint_as_float(high & 0xFFFF0000U)}};
}
/// Rounds like store().
__device__ inline void set_quad(RawGroup<float>& group, int q, const Quad& quad) {
#pragma unroll
  for (int l = 0; l < 4; ++l) group.words[4 * q + l] = __float_as_uint(quad.lanes[l]);
}
__device__ inline void set_quad(RawGroup<__nv_bfloat16>& group, int q, const Quad& quad) {
#pragma unroll
  for (int w = 0; w < 2; ++w) {
    const std::uint32_t low = __bfloat16_as_ushort(__float2bfloat16_rn(quad.lanes[2 * w]));
    const std::uint32_t high = __bfloat16_as_ushort(__float2bfloat16_rn(quad.lanes[2 * w + 1]));
    group.words[2 * q + w] = low | high << 16U;
  }
}

/// Shared memory with kNumbers numbers for each channel of a block.
template <int kNumbers>
struct TileChannels {
  alignas(16) float numbers[kNumbers][kQuads][kTileAcross][4];

  /// Returns number `n` for the channels of half `q` of the calling thread's group.
  [[nodiscard]] __device__ Quad quad(int n, int q) const {
    const float4 raw = *reinterpret_cast<const float4*>(numbers[n][q][threadIdx.x]);
    return {{raw.x, raw.y, raw.z, raw.w}};
  }
};

/// The numbers of one channel.
template <int kNumbers>
struct ChannelNumbers {
  float numbers[kNumbers];
};

/// Fills `channels` with the ChannelNumbers<kNumbers> that `compute(channel)` returns; calls it
/// once per channel of the block. All threads of the block must call this. A tiling has at least
/// one thread per channel.
template <int kNumbers, class Compute>
__device__ void fill_channels(TileChannels<kNumbers>& channels, const ChannelMatrix& matrix,
                              const Compute& compute) {
  const unsigned own = threadIdx.y * blockDim.x + threadIdx.x;
  const std::size_t channel = static_cast<std::size_t>(blockIdx.x) * blockDim.x * kGroupLanes + own;
  if (own < blockDim.x * kGroupLanes && channel < matrix.channels) {
    const ChannelNumbers<kNumbers> computed = compute(channel);
    const unsigned lane = own % kGroupLanes;
#pragma unroll
    for (int n = 0; n < kNumbers; ++n) {
      channels.numbers[n][lane / 4][own / kGroupLanes][lane % 4] = computed.numbers[n];
    }
  }
  __syncthreads();
}

/// A thread's groups in memory: at, at - stride, ... down to `floor`. They go from the matrix's
/// last row to its first. A kernel so begins where the previous kernel on the matrix ended, and
/// finds that part in the L2 cache.
struct RowWalk {
  std::int64_t at;
  std::int64_t floor;
  std::int64_t stride;
};

__device__ inline RowWalk row_walk(const ChannelMatrix& matrix, const ChannelTiling& tiling) {
  const ChunkRows rows = rows_of(matrix, tiling, gridDim.y - 1 - blockIdx.y);
  const auto groups = static_cast<std::int64_t>(matrix.groups());
  const std::int64_t group = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  const std::int64_t last = static_cast<std::int64_t>(rows.end) - 1 - threadIdx.y;
  const std::int64_t floor = static_cast<std::int64_t>(rows.begin) * groups;
  return {.at = group < groups ? last * groups + group : floor - 1,
          .floor = floor,
          .stride = blockDim.y * groups};
}

/// Processes the groups of `walk`, kRows at a time: read(at) for each, change(rows), then write(at,
/// row) for each. (The compiler would not read ahead by itself, since the tensor may be changed in
/// place.)
template <int kRows, class Read, class Change, class Write>
__device__ void for_each_row(const RowWalk& walk, const Read& read, const Change& change,
                             const Write& write) {
  for (std::int64_t begin = walk.at; begin >= walk.floor; begin -= kRows * walk.stride) {
    decltype(read(std::size_t{})) rows[kRows];
#pragma unroll
    for (int r = 0; r < kRows; ++r) {  // after the last group, reads the first one again
      const std::int64_t at = begin - r * walk.stride;
      rows[r] = read(static_cast<std::size_t>(at >= walk.floor ? at : begin));
    }
    change(rows);
#pragma unroll
    for (int r = 0; r < kRows; ++r) {
      const std::int64_t at = begin - r * walk.stride;
      if (at >= walk.floor) write(static_cast<std::size_t>(at), rows[r]);
    }
  }
}

/// Rows with 64 bytes in total, which a thread reads before it writes.
template <class T>
inline constexpr int kRowsAhead = 64 / static_cast<int>(sizeof(RawGroup<T>));

}  // namespace spillway::cuda
