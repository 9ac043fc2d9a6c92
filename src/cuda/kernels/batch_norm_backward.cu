#include "src/cuda/kernels/batch_norm_kernels.h"
#include "src/cuda/kernels/launch.cuh"
#include "src/cuda/kernels/norm_vectors.cuh"

namespace spillway::cuda {
namespace {

// dy behind the ReLU.
template <class T>
__device__ Group load_gradient(const T* dy, const std::uint8_t* mask, std::size_t at) {
  Group gradient = load_group(dy, at);
  if (mask == nullptr) return gradient;
  const unsigned positive = mask[at];
#pragma unroll
  for (int l = 0; l < kGroupLanes; ++l) {
    if ((positive >> static_cast<unsigned>(l) & 1U) == 0U) gradient.lanes[l] = 0.F;
  }
  return gradient;
}

// The sums that dbeta and dgamma are made of: of dy, and of dy (x - mean).
struct GroupSlopes {
  Group dy;
  Group product;
  __device__ void merge(const GroupSlopes& other) {
#pragma unroll
    for (int l = 0; l < kGroupLanes; ++l) {
      dy.lanes[l] += other.dy.lanes[l];
      product.lanes[l] += other.product.lanes[l];
    }
  }
};

struct ChannelSlopes {
  float dy;
  float product;
  __device__ void merge(const ChannelSlopes& other) {
    dy += other.dy;
    product += other.product;
  }
};

// partials: (2, chunks, channels)
template <class T>
__global__ void __launch_bounds__(kTileThreads)
    chunk_slopes(ChannelMatrix matrix, ChannelTiling tiling, const T* __restrict__ x,
                 const T* __restrict__ dy, const std::uint8_t* __restrict__ mask,
                 const float* __restrict__ mean_variance, float* __restrict__ partials) {
  const TilePlace place = tile_place(matrix, tiling);
  GroupSlopes mine{};
  if (place.is_inside) {
    const Group mean = load_group(mean_variance, place.group);
#pragma unroll 2
    for (std::size_t row = place.first; row < place.end; row += place.step) {
      const std::size_t at = row * matrix.groups() + place.group;
      const Group values = load_group(x, at);
      const Group gradient = load_gradient(dy, mask, at);
#pragma unroll
      for (int l = 0; l < kGroupLanes; ++l) {
        mine.dy.lanes[l] += gradient.lanes[l];
        mine.product.lanes[l] += gradient.lanes[l] * (values.lanes[l] - mean.lanes[l]);
      }
    }
  }
  merge_down(mine);
  if (!place.is_inside || threadIdx.y != 0) return;
  store_group(partials, blockIdx.y * matrix.groups() + place.group, mine.dy);
  store_group(partials, (tiling.chunks + blockIdx.y) * matrix.groups() + place.group, mine.product);
}

// gradient: (channels) dgamma, (channels) dbeta
__global__ void __launch_bounds__(kTileThreads)
    add_slopes(ChannelMatrix matrix, ChannelTiling tiling, const float* __restrict__ partials,
               NormVectors vectors, float* __restrict__ gradient) {
  const std::size_t channel = static_cast<std::size_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  const bool is_inside = channel < matrix.channels;
  ChannelSlopes mine{};
  for (unsigned chunk = threadIdx.y; is_inside && chunk < tiling.chunks; chunk += blockDim.y) {
    mine.merge({.dy = partials[chunk * matrix.channels + channel],
                .product = partials[(tiling.chunks + chunk) * matrix.channels + channel]});
  }
  merge_down(mine);
  if (!is_inside || threadIdx.y != 0) return;
  const float variance = vectors.mean_variance[matrix.channels + channel];
  gradient[channel] = mine.product / sqrtf(variance + vectors.epsilon);
  gradient[matrix.channels + channel] = mine.dy;
}

struct GroupPair {
  Group x;
  Group dy;
};

// dx = gamma / deviation (dy - dbeta / n - normalised x dgamma / n)
template <class T>
__global__ void __launch_bounds__(kTileThreads)
    backward_rows(ChannelMatrix matrix, ChannelTiling tiling, const T* __restrict__ x, const T* dy,
                  T* dx, const std::uint8_t* __restrict__ mask, NormVectors vectors,
                  const float* __restrict__ gradient) {
  const TilePlace place = tile_place(matrix, tiling);
  if (!place.is_inside) return;
  const float share = 1.F / static_cast<float>(matrix.rows);
  const Group mean = load_group(vectors.mean_variance, place.group);
  Group scale = load_group(vectors.gamma_beta, place.group);
  Group slope = load_group(gradient, place.group);
  Group mean_dy = load_group(gradient, matrix.groups() + place.group);
  const Group inverse = inverse_deviation(matrix, vectors, place.group);
#pragma unroll
  for (int l = 0; l < kGroupLanes; ++l) {
    scale.lanes[l] *= inverse.lanes[l];
    slope.lanes[l] *= inverse.lanes[l] * share;
    mean_dy.lanes[l] *= share;
  }
  const auto at = [&](std::size_t row) { return row * matrix.groups() + place.group; };
  for_each_row<2>(
      place,
      [&](std::size_t row) {
        return GroupPair{load_group(x, at(row)), load_gradient(dy, mask, at(row))};
      },
      [&](std::size_t row, GroupPair& values) {
#pragma unroll
        for (int l = 0; l < kGroupLanes; ++l) {
          const float distance = values.x.lanes[l] - mean.lanes[l];
          values.dy.lanes[l] =
              scale.lanes[l] * (values.dy.lanes[l] - mean_dy.lanes[l] - distance * slope.lanes[l]);
        }
        store_group(dx, at(row), values.dy);
      });
}

}  // namespace

void batch_slopes(const Machine& machine, const ChannelMatrix& matrix, const NormVectors& vectors,
                  const NormOperands& operands, std::byte* workspace, float* gradient) {
  auto* const partials = reinterpret_cast<float*>(workspace);
  with_element(machine.precision, [&](auto element) {
    using T = decltype(element);
    launch_tiles(machine.stream, matrix, chunk_slopes<T>, reinterpret_cast<const T*>(operands.x),
                 reinterpret_cast<const T*>(operands.dy),
                 reinterpret_cast<const std::uint8_t*>(operands.mask), vectors.mean_variance,
                 partials);
  });
  launch_over_chunks(machine.stream, matrix, add_slopes, partials, vectors, gradient);
}

void normalise_backward(const Machine& machine, const ChannelMatrix& matrix,
                        const NormVectors& vectors, const NormOperands& operands,
                        const float* gradient, std::byte* dx) {
  with_element(machine.precision, [&](auto element) {
    using T = decltype(element);
    launch_tiles(machine.stream, matrix, backward_rows<T>, reinterpret_cast<const T*>(operands.x),
                 reinterpret_cast<const T*>(operands.dy), reinterpret_cast<T*>(dx),
                 reinterpret_cast<const std::uint8_t*>(operands.mask), vectors, gradient);
  });
}

}  // namespace spillway::cuda
