#include "src/cuda/kernels/channel_tile.cuh"
#include "src/cuda/kernels/kernels.h"
#include "src/cuda/kernels/launch.cuh"

namespace spillway::cuda {
namespace {

struct GroupSum {
  Group sum;
  __device__ void merge(const GroupSum& other) {
#pragma unroll
    for (int l = 0; l < kGroupLanes; ++l) sum.lanes[l] += other.sum.lanes[l];
  }
};

struct ChannelSum {
  float sum;
  __device__ void merge(const ChannelSum& other) { sum += other.sum; }
};

// partials: (chunks, channels)
template <class T>
__global__ void __launch_bounds__(kTileThreads)
    sum_chunks(ChannelMatrix matrix, ChannelTiling tiling, const T* __restrict__ x,
               float* __restrict__ partials) {
  const TilePlace place = tile_place(matrix, tiling);
  GroupSum mine{};
  if (place.is_inside) {
#pragma unroll 4
    for (std::size_t row = place.first; row < place.end; row += place.step) {
      mine.merge({load_group(x, row * matrix.groups() + place.group)});
    }
  }
  merge_down(mine);
  if (place.is_inside && threadIdx.y == 0) {
    store_group(partials, blockIdx.y * matrix.groups() + place.group, mine.sum);
  }
}

__global__ void __launch_bounds__(kTileThreads)
    add_chunks(ChannelMatrix matrix, ChannelTiling tiling, const float* __restrict__ partials,
               float* __restrict__ sums) {
  const std::size_t channel = static_cast<std::size_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  const bool is_inside = channel < matrix.channels;
  ChannelSum mine{};
  if (is_inside) {
#pragma unroll 4
    for (unsigned chunk = threadIdx.y; chunk < tiling.chunks; chunk += blockDim.y) {
      mine.merge({partials[chunk * matrix.channels + channel]});
    }
  }
  merge_down(mine);
  if (is_inside && threadIdx.y == 0) sums[channel] = mine.sum;
}

}  // namespace

um::Bytes channel_sums_workspace(const ChannelMatrix& matrix) {
  return um::Bytes{tiling_of(matrix).chunks * matrix.channels * sizeof(float)};
}

void channel_sums(const Machine& machine, const ChannelMatrix& matrix, const std::byte* x,
                  std::byte* workspace, float* sums) {
  auto* const partials = reinterpret_cast<float*>(workspace);
  with_element(machine.precision, [&](auto element) {
    using T = decltype(element);
    launch_tiles(machine.stream, matrix, sum_chunks<T>, reinterpret_cast<const T*>(x), partials);
  });
  launch_over_chunks(machine.stream, matrix, add_chunks, partials, sums);
}

}  // namespace spillway::cuda
