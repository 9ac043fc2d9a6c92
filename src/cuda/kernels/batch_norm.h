#pragma once

#include <cstddef>

#include "src/cuda/layout/layout.h"
#include "um/bytes.h"

namespace spillway::cuda {

/// The vectors of a batch norm layer in device memory, (padded channels) each; the first vector of
/// each pair precedes the second.
struct NormVectors {
  const float* gamma_beta;
  const float* mean_variance;
  float epsilon;
};

/// How running statistics are updated from those of a batch.
struct RunningUpdate {
  float* running;  ///< means, then variances; null: no update
  float momentum;
  float unbiased;  ///< factor from the batch's biased to its unbiased variance
};

/// mask: a byte per 8 channels of a pixel; bit i is set if channel i of y is positive.
struct NormRelu {
  bool applies;
  std::byte* mask;  ///< null if not needed
};

/// Operands of the backward pass.
struct NormOperands {
  const std::byte* x;
  const std::byte* dy;
  const std::byte* mask;  ///< null without ReLU
};

// The functions below enqueue kernels. Sums are always added in the same order. Padding channels,
// with zero values and parameters, stay zero.

/// Returns the workspace of batch_moments() and batch_slopes().
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

/// Computes dx from `gradient`, the result of batch_slopes(). dx may be dy.
void normalise_backward(const Machine& machine, const ChannelMatrix& matrix,
                        const NormVectors& vectors, const NormOperands& operands,
                        const float* gradient, std::byte* dx);

}  // namespace spillway::cuda
