#pragma once

#include <string>

#include "src/cuda/cudnn/cudnn_graph.h"
#include "src/cuda/layout/layout.h"
#include "src/ops/operation.h"

namespace spillway::cuda {

/// One pass of a convolution, as a request to cuDNN.
struct ConvolutionProblem {
  ConvolutionPass pass;
  ConvolutionGeometry geometry;
  bool relu = false;  ///< forward pass only

  friend bool operator==(const ConvolutionProblem&, const ConvolutionProblem&) = default;
};

[[nodiscard]] inline ConvolutionProblem problem_of(const ConvolutionForward& op) {
  return {.pass = ConvolutionPass::kForward, .geometry = op.geometry, .relu = op.relu};
}
[[nodiscard]] inline ConvolutionProblem problem_of(const ConvolutionBackwardData& op) {
  return {.pass = ConvolutionPass::kBackwardData, .geometry = op.geometry};
}
[[nodiscard]] inline ConvolutionProblem problem_of(const ConvolutionBackwardWeights& op) {
  return {.pass = ConvolutionPass::kBackwardWeights, .geometry = op.geometry};
}

/// Transposed convolutions use passes of the adjoint, the convolution from y to x: forward is its
/// backward-data pass, backward-data its forward pass. Its engines have no bias.
[[nodiscard]] inline ConvolutionProblem problem_of(const TransposedConvolutionForward& op) {
  return {.pass = ConvolutionPass::kBackwardData, .geometry = op.geometry.adjoint()};
}
[[nodiscard]] inline ConvolutionProblem problem_of(const TransposedConvolutionBackwardData& op) {
  return {.pass = ConvolutionPass::kForward, .geometry = op.geometry.adjoint()};
}
[[nodiscard]] inline ConvolutionProblem problem_of(const TransposedConvolutionBackwardWeights& op) {
  return {.pass = ConvolutionPass::kBackwardWeights, .geometry = op.geometry.adjoint()};
}

/// Returns true if padding channels do not split a group: there are none, or each channel is a
/// group, including each padding channel.
[[nodiscard]] bool has_whole_groups(const ConvolutionGeometry& geometry);

/// Returns text for messages: "the forward convolution of 32 x 64x56x56 to 128x56x56 (kernel 3x3)".
[[nodiscard]] std::string describe(const ConvolutionProblem& problem);

/// Ids of the tensors of the graphs below. A tensor's gradient has the same id.
inline constexpr std::int64_t kTensorX = 'x';
inline constexpr std::int64_t kTensorW = 'w';
inline constexpr std::int64_t kTensorY = 'y';
inline constexpr std::int64_t kTensorBias = 'b';

/// Returns the convolution without bias and ReLU. With Precision::kBf16 all tensors are bfloat16,
/// also the weights' gradient: cuDNN 9.19 has no engine that writes it as float.
[[nodiscard]] CudnnGraph plain_graph(const CudnnTarget& target, Precision precision,
                                     const ConvolutionProblem& problem);

/// Returns the forward pass with bias and optional ReLU in one kernel. cuDNN has precompiled
/// engines for this, with a bias of the tensors' type and float intermediates. A ReLU without a
/// bias, or a float bias on bfloat16, would need engines compiled at run time. Requires: a forward
/// pass with a bias.
[[nodiscard]] CudnnGraph fused_graph(const CudnnTarget& target, Precision precision,
                                     const ConvolutionProblem& problem);

}  // namespace spillway::cuda
