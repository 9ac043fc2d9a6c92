#pragma once

#include "src/cuda/kernels/batch_norm_kernels.h"
#include "src/cuda/kernels/channel_tile.cuh"

namespace spillway::cuda {

/// 1 / sqrt(variance + epsilon) of a group's channels.
__device__ inline Group inverse_deviation(const ChannelMatrix& matrix, const NormVectors& vectors,
                                          std::size_t group) {
  Group result = load_group(vectors.mean_variance, matrix.groups() + group);
#pragma unroll
  for (float& lane : result.lanes) lane = 1.F / sqrtf(lane + vectors.epsilon);
  return result;
}

}  // namespace spillway::cuda
