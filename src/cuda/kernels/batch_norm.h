#pragma once

#include <cstddef>

#include "src/cuda/layout/layout.h"
#include "um/bytes.h"

namespace spillway::cuda {

/// The vectors of a batch norm layer, in device memory: (padded channels) of one, then of the
/// other.
struct NormVectors {
  const float* gamma_beta;
  const float* mean_variance;
  float epsilon;
};

/// How running statistics follow those of a batch.
struct RunningUpdate {
  float* running;  ///< means, then variances; null: they stay as they are
  float momentum;
  float unbiased;  ///< what the batch's variance is multiplied by
};

/// mask: a byte for each 8 channels of a pixel, bit i: whether channel i of y is positive.
struct NormRelu {
  bool applies;
  std::byte* mask;  ///< null: nobody wants it
};

/// What the backward pass reads.
struct NormOperands {
  const std::byte* x;
  const std::byte* dy;
  const std::byte* mask;  ///< null without ReLU
};

// Each of these enqueues kernels. Sums are always added in the same order. Padding channels, whose
// values and parameters are zero, stay zero.

/// What batch_moments() and batch_slopes() need.
[[nodiscard]] um::Bytes norm_workspace(const ChannelMatrix& matrix);

/// saved = means, then biased variances, of the columns of x.
void batch_moments(const Machine& machine, const ChannelMatrix& matrix, const std::byte* x,
                   std::byte* workspace, float* saved, const RunningUpdate& update);

/// y = gamma (x - mean) / sqrt(variance + epsilon) + beta. y may be x.
void normalise(const Machine& machine, const ChannelMatrix& matrix, const NormVectors& vectors,
               const std::byte* x, std::byte* y, const NormRelu& relu);

/// gradient = dgamma, then dbeta.
void batch_slopes(const Machine& machine, const ChannelMatrix& matrix, const NormVectors& vectors,
                  const NormOperands& operands, std::byte* workspace, float* gradient);

/// dx from `gradient`, the result of batch_slopes(). dx may be dy.
void normalise_backward(const Machine& machine, const ChannelMatrix& matrix,
                        const NormVectors& vectors, const NormOperands& operands,
                        const float* gradient, std::byte* dx);

}  // namespace spillway::cuda
