#include "src/cuda/kernels/batch_norm.h"
#include "src/cuda/kernels/launch.cuh"
#include "src/cuda/kernels/row_walk.cuh"

namespace spillway::cuda {
namespace {

// Merges the mean and the sum of squared distances from it of two sets of values. The formulas are
// from Chan, Golub and LeVeque ("Updating formulae and a pairwise algorithm for computing sample
// variances", 1979). They lose no precision if the mean is large relative to the deviation.
__device__ void merge_moments(float count, float other_count, float other_mean, float other_squares,
                              float& mean, float& squares) {
  const float all = count + other_count;
  const float share = other_count / all;
  const float distance = other_mean - mean;
  mean += distance * share;
  squares += other_squares + distance * distance * count * share;
}

struct GroupMoments {
  Group mean;
  Group squares;
  float count;
  __device__ void merge(const GroupMoments& other) {
    if (other.count == 0.F) return;
#pragma unroll
    for (int l = 0; l < kGroupLanes; ++l) {
      merge_moments(count, other.count, other.mean.lanes[l], other.squares.lanes[l], mean.lanes[l],
                    squares.lanes[l]);
    }
    count += other.count;
  }
};

struct ChannelMoments {
  float mean;
  float squares;
  float count;
  __device__ void merge(const ChannelMoments& other) {
    if (other.count == 0.F) return;
    merge_moments(count, other.count, other.mean, other.squares, mean, squares);
    count += other.count;
  }
};

// Returns the moments of one thread's rows in one pass, with values relative to the first one. This
// is one of the n values, so its distance from the mean is at most sqrt(n) deviations. The final
// subtraction therefore costs at most a factor n (some hundreds) of float's 2^-24, mostly none.
template <class T>
__device__ GroupMoments moments_of(const ChannelMatrix& matrix, const TilePlace& place,
                                   const T* __restrict__ x) {
  GroupMoments moments{};
  if (!place.is_inside || place.first >= place.end) return moments;
  const Group shift = load_group(x, place.first * matrix.groups() + place.group);
  Group sums{};
  Group squares{};
#pragma unroll 4
  for (std::size_t row = place.first; row < place.end; row += place.step) {
    const Group values = load_group(x, row * matrix.groups() + place.group);
#pragma unroll
    for (int l = 0; l < kGroupLanes; ++l) {
      const float distance = values.lanes[l] - shift.lanes[l];
      sums.lanes[l] += distance;
      squares.lanes[l] += distance * distance;
    }
  }
  moments.count = static_cast<float>((place.end - place.first + place.step - 1) / place.step);
#pragma unroll
  for (int l = 0; l < kGroupLanes; ++l) {
    const float mean = sums.lanes[l] / moments.count;
    moments.mean.lanes[l] = shift.lanes[l] + mean;
    moments.squares.lanes[l] = fmaxf(squares.lanes[l] - sums.lanes[l] * mean, 0.F);
  }
  return moments;
}

// partials: (2, chunks, channels), means, then sums of squared distances from them
template <class T>
__global__ void __launch_bounds__(kTileThreads, kTileBlocks)
    chunk_moments(ChannelMatrix matrix, ChannelTiling tiling, const T* __restrict__ x,
                  float* __restrict__ partials) {
  const TilePlace place = tile_place(matrix, tiling);
  GroupMoments mine = moments_of(matrix, place, x);
  merge_down(mine);
  if (!place.is_inside || threadIdx.y != 0) return;
  store_group(partials, blockIdx.y * matrix.groups() + place.group, mine.mean);
  store_group(partials, (tiling.chunks + blockIdx.y) * matrix.groups() + place.group, mine.squares);
}

// saved: (channels) means, then (channels) variances
__global__ void __launch_bounds__(kTileThreads)
    merge_chunks(ChannelMatrix matrix, ChannelTiling tiling, const float* __restrict__ partials,
                 float* __restrict__ saved, RunningUpdate update) {
  const std::size_t channel = static_cast<std::size_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  const bool is_inside = channel < matrix.channels;
  ChannelMoments mine{};
  for (unsigned chunk = threadIdx.y; is_inside && chunk < tiling.chunks; chunk += blockDim.y) {
    const std::size_t begin = chunk * tiling.rows_per_chunk;
    const std::size_t rows = matrix.rows - begin;
    mine.merge(
        {.mean = partials[chunk * matrix.channels + channel],
         .squares = partials[(tiling.chunks + chunk) * matrix.channels + channel],
         .count = static_cast<float>(rows < tiling.rows_per_chunk ? rows : tiling.rows_per_chunk)});
  }
  merge_down(mine);
  if (!is_inside || threadIdx.y != 0) return;
  const float variance = mine.squares / mine.count;
  saved[channel] = mine.mean;
  saved[matrix.channels + channel] = variance;
  if (update.running == nullptr) return;
  float& mean = update.running[channel];
  float& spread = update.running[matrix.channels + channel];
  mean = (1.F - update.momentum) * mean + update.momentum * mine.mean;
  spread = (1.F - update.momentum) * spread + update.momentum * update.unbiased * variance;
}

template <class T>
struct NormalisedRow {
  RawGroup<T> values;
  unsigned positive;  // bit l belongs to lane l
};

__device__ float inverse_deviation(const ChannelMatrix& matrix, const NormVectors& vectors,
                                   std::size_t channel) {
  return 1.F / sqrtf(vectors.mean_variance[matrix.channels + channel] + vectors.epsilon);
}

// mask: a byte per group; bit l is set if lane l of y is positive. Null if not needed.
template <class T>
__global__ void __launch_bounds__(kTileThreads, kTileBlocks)
    normalise_rows(ChannelMatrix matrix, ChannelTiling tiling, const T* x, T* y,
                   NormVectors vectors, bool relu, std::uint8_t* __restrict__ mask) {
  enum { kMean, kScale, kBeta, kNumbers };
  __shared__ TileChannels<kNumbers> channels;
  fill_channels(channels, matrix, [&](std::size_t channel) {
    return ChannelNumbers<kNumbers>{
        {vectors.mean_variance[channel],
         vectors.gamma_beta[channel] * inverse_deviation(matrix, vectors, channel),
         vectors.gamma_beta[matrix.channels + channel]}};
  });
  for_each_row<kRowsAhead<T>>(
      row_walk(matrix, tiling),
      [&](std::size_t at) {
        return NormalisedRow<T>{load_raw(x, at), 0};
      },
      [&](auto& rows) {
#pragma unroll
        for (int q = 0; q < kQuads; ++q) {
          const Quad mean = channels.quad(kMean, q);
          const Quad scale = channels.quad(kScale, q);
          const Quad beta = channels.quad(kBeta, q);
#pragma unroll
          for (NormalisedRow<T>& row : rows) {
            Quad values = get_quad(row.values, q);
#pragma unroll
            for (int l = 0; l < 4; ++l) {
              const float value =
                  (values.lanes[l] - mean.lanes[l]) * scale.lanes[l] + beta.lanes[l];
              row.positive |= (value > 0.F ? 1U : 0U) << static_cast<unsigned>(4 * q + l);
              values.lanes[l] = relu && value < 0.F ? 0.F : value;  // a NaN stays a NaN
            }
            set_quad(row.values, q, values);
          }
        }
      },
      [&](std::size_t at, const NormalisedRow<T>& row) {
        store_raw(y, at, row.values);
        if (mask != nullptr) mask[at] = static_cast<std::uint8_t>(row.positive);
      });
}

__device__ unsigned load_mask(const std::uint8_t* mask, std::size_t at) {
  return mask == nullptr ? 0xFFU : mask[at];
}

// Returns lane l of dy after the ReLU's mask.
__device__ float masked(float dy, unsigned positive, int l) {
  return (positive >> static_cast<unsigned>(l) & 1U) == 0U ? 0.F : dy;
}

// The sums for dbeta and dgamma: of dy, and of dy (x - mean).
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
__global__ void __launch_bounds__(kTileThreads, kTileBlocks)
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
      const Group gradient = load_group(dy, at);
      const unsigned positive = load_mask(mask, at);
#pragma unroll
      for (int l = 0; l < kGroupLanes; ++l) {
        const float slope = masked(gradient.lanes[l], positive, l);
        mine.dy.lanes[l] += slope;
        mine.product.lanes[l] += slope * (values.lanes[l] - mean.lanes[l]);
      }
    }
  }
  merge_down(mine);
  if (!place.is_inside || threadIdx.y != 0) return;
  store_group(partials, blockIdx.y * matrix.groups() + place.group, mine.dy);
  store_group(partials, (tiling.chunks + blockIdx.y) * matrix.groups() + place.group, mine.product);
}

// gradient: (channels) dgamma, then (channels) dbeta
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

template <class T>
struct BackwardRow {
  RawGroup<T> x;
  RawGroup<T> dy;
  unsigned positive;
};

// dx = gamma / deviation (dy - dbeta / n - normalised x dgamma / n)
template <class T>
__global__ void __launch_bounds__(kTileThreads, kTileBlocks)
    backward_rows(ChannelMatrix matrix, ChannelTiling tiling, const T* __restrict__ x, const T* dy,
                  T* dx, const std::uint8_t* __restrict__ mask, NormVectors vectors,
                  const float* __restrict__ gradient) {
  enum { kMean, kScale, kSlope, kMeanDy, kNumbers };
  __shared__ TileChannels<kNumbers> channels;
  fill_channels(channels, matrix, [&](std::size_t channel) {
    const float share = 1.F / static_cast<float>(matrix.rows);
    const float variance = vectors.mean_variance[matrix.channels + channel];
    const float inverse = 1.F / sqrtf(variance + vectors.epsilon);
    return ChannelNumbers<kNumbers>{
        {vectors.mean_variance[channel], vectors.gamma_beta[channel] * inverse,
         gradient[channel] * (inverse * share), gradient[matrix.channels + channel] * share}};
  });
  for_each_row<kRowsAhead<T> / 2>(
      row_walk(matrix, tiling),
      [&](std::size_t at) {
        return BackwardRow<T>{load_raw(x, at), load_raw(dy, at), load_mask(mask, at)};
      },
      [&](auto& rows) {
#pragma unroll
        for (int q = 0; q < kQuads; ++q) {
          const Quad mean = channels.quad(kMean, q);
          const Quad scale = channels.quad(kScale, q);
          const Quad slope = channels.quad(kSlope, q);
          const Quad mean_dy = channels.quad(kMeanDy, q);
#pragma unroll
          for (BackwardRow<T>& row : rows) {
            const Quad values = get_quad(row.x, q);
            Quad slopes = get_quad(row.dy, q);
#pragma unroll
            for (int l = 0; l < 4; ++l) {
              const float dy_of_lane = masked(slopes.lanes[l], row.positive, 4 * q + l);
              const float distance = values.lanes[l] - mean.lanes[l];
              slopes.lanes[l] =
                  scale.lanes[l] * (dy_of_lane - mean_dy.lanes[l] - distance * slope.lanes[l]);
            }
            set_quad(row.dy, q, slopes);
          }
        }
      },
      [&](std::size_t at, const BackwardRow<T>& row) { store_raw(dx, at, row.dy); });
}

}  // namespace

um::Bytes norm_workspace(const ChannelMatrix& matrix) {
  return um::Bytes{2 * tiling_of(matrix).chunks * matrix.channels * sizeof(float)};
}

void batch_moments(const Machine& machine, const ChannelMatrix& matrix, const std::byte* x,
                   std::byte* workspace, float* saved, const RunningUpdate& update) {
  auto* const partials = reinterpret_cast<float*>(workspace);
  with_element(machine.precision, [&](auto element) {
    using T = decltype(element);
    launch_tiles(machine.stream, matrix, chunk_moments<T>, reinterpret_cast<const T*>(x), partials);
  });
  launch_over_chunks(machine.stream, matrix, merge_chunks, partials, saved, update);
}

void normalise(const Machine& machine, const ChannelMatrix& matrix, const NormVectors& vectors,
               const std::byte* x, std::byte* y, const NormRelu& relu) {
  with_element(machine.precision, [&](auto element) {
    using T = decltype(element);
    launch_tiles(machine.stream, matrix, normalise_rows<T>, reinterpret_cast<const T*>(x),
                 reinterpret_cast<T*>(y), vectors, relu.applies,
                 reinterpret_cast<std::uint8_t*>(relu.mask));
  });
}

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
