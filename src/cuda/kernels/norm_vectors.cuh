#pragma once

#include "src/cuda/kernels/batch_norm_kernels.h"
#include "src/cuda/kernels/row_walk.cuh"

namespace spillway::cuda {

/// 1 / sqrt(variance + epsilon) of a channel.
__device__ inline float inverse_deviation(const ChannelMatrix& matrix, const NormVectors& vectors,
                                          std::size_t channel) {
  return 1.F / sqrtf(vectors.mean_variance[matrix.channels + channel] + vectors.epsilon);
}

}  // namespace spillway::cuda
