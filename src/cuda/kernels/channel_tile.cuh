#pragma once

#include <cstddef>
#include <cstdint>

#include "src/cuda/kernels/launch.cuh"
#include "src/cuda/layout/layout.cuh"
#include "src/cuda/layout/layout.h"

namespace spillway::cuda {

/// Blocks per multiprocessor: half of the threads that fit, with 64 registers each.
inline constexpr unsigned kTileBlocks = 4;

/// The 8 channels of a pixel that one thread handles together.
struct Group {
  float lanes[Layout::kChannelBlock];
};
inline constexpr int kGroupLanes = static_cast<int>(Layout::kChannelBlock);

/// Loads group `i` of a tensor of T.
template <class T>
__device__ Group load_group(const T* tensor, std::size_t i) {
  constexpr int kPacks = kGroupLanes / Pack<T>::kLanes;
  Group group;
#pragma unroll
  for (int p = 0; p < kPacks; ++p) {
    const Pack<T> pack = load(tensor, i * kPacks + p);
#pragma unroll
    for (int l = 0; l < Pack<T>::kLanes; ++l) group.lanes[p * Pack<T>::kLanes + l] = pack.lanes[l];
  }
  return group;
}
template <class T>
__device__ void store_group(T* tensor, std::size_t i, const Group& group) {
  constexpr int kPacks = kGroupLanes / Pack<T>::kLanes;
#pragma unroll
  for (int p = 0; p < kPacks; ++p) {
    Pack<T> pack;
#pragma unroll
    for (int l = 0; l < Pack<T>::kLanes; ++l) pack.lanes[l] = group.lanes[p * Pack<T>::kLanes + l];
    store(tensor, i * kPacks + p, pack);
  }
}

/// The rows of a chunk.
struct ChunkRows {
  std::size_t begin;
  std::size_t end;
};

__device__ inline ChunkRows rows_of(const ChannelMatrix& matrix, const ChannelTiling& tiling,
                                    unsigned chunk) {
  const std::size_t begin = chunk * tiling.rows_per_chunk;
  const std::size_t chunk_end = begin + tiling.rows_per_chunk;
  return {.begin = begin, .end = chunk_end < matrix.rows ? chunk_end : matrix.rows};
}

/// The part of a matrix that a thread sums: its group, and rows first, first + step, ... before
/// `end`.
struct TilePlace {
  std::size_t group;
  bool is_inside;  ///< false: the thread has no group and only takes part in its block's work
  std::size_t first;
  std::size_t end;
  std::size_t step;
};

__device__ inline TilePlace tile_place(const ChannelMatrix& matrix, const ChannelTiling& tiling) {
  const std::size_t group = static_cast<std::size_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  const ChunkRows rows = rows_of(matrix, tiling, blockIdx.y);
  return {.group = group,
          .is_inside = group < matrix.groups(),
          .first = rows.begin + threadIdx.y,
          .end = rows.end,
          .step = blockDim.y};
}

/// Merges the states of a column's threads into that of its first thread (threadIdx.y = 0), always
/// in the same order. All threads of a block must call it.
template <class State>
__device__ void merge_down(State& mine) {
  __shared__ State states[kTileThreads];
  const unsigned own = threadIdx.y * blockDim.x + threadIdx.x;
  states[own] = mine;
  for (unsigned count = blockDim.y; count > 1;) {
    const unsigned half = (count + 1) / 2;
    __syncthreads();
    if (threadIdx.y + half < count) {
      mine.merge(states[own + half * blockDim.x]);
      states[own] = mine;
    }
    count = half;
  }
}

/// Enqueues `kernel(matrix, tiling, arguments...)` with the threads of the matrix's tiling.
template <class... Parameters, class... Arguments>
void launch_tiles(cudaStream_t stream, const ChannelMatrix& matrix, void (*kernel)(Parameters...),
                  Arguments... arguments) {
  const ChannelTiling tiling = tiling_of(matrix);
  const Grid grid{.blocks = dim3{tiling.columns, tiling.chunks},
                  .threads = dim3{tiling.across, tiling.down}};
  enqueue(stream, grid, kernel, matrix, tiling, arguments...);
}

/// Threads of a kernel that merges the chunks' results of each channel: kChunkThreads for each of
/// kChunkChannels channels. A thread has channel `channel` and chunks threadIdx.y, threadIdx.y +
/// kChunkThreads, ...
inline constexpr unsigned kChunkChannels = 32;
inline constexpr unsigned kChunkThreads = kTileThreads / kChunkChannels;

template <class... Parameters, class... Arguments>
void launch_over_chunks(cudaStream_t stream, const ChannelMatrix& matrix,
                        void (*kernel)(Parameters...), Arguments... arguments) {
  const auto blocks =
      static_cast<unsigned>((matrix.channels + kChunkChannels - 1) / kChunkChannels);
  const Grid grid{.blocks = dim3{blocks}, .threads = dim3{kChunkChannels, kChunkThreads}};
  enqueue(stream, grid, kernel, matrix, tiling_of(matrix), arguments...);
}

}  // namespace spillway::cuda
