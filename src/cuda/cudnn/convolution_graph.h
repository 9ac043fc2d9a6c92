#pragma once

#include <string>

#include "src/cuda/cudnn/cudnn_graph.h"
#include "src/cuda/layout/layout.h"
#include "src/ops/operation.h"

namespace spillway::cuda {

/// One pass of a convolution, as cuDNN is asked for it.
struct ConvolutionProblem {
  ConvolutionPass pass;
  ConvolutionGeometry geometry;
  bool relu = false;  ///< only of the forward pass

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

/// Of a transposed convolution: of its adjoint, the convolution that makes x of y. Forward is its
/// gradient of the data, backward its forward pass. Its engines know of no bias.
[[nodiscard]] inline ConvolutionProblem problem_of(const TransposedConvolutionForward& op) {
  return {.pass = ConvolutionPass::kBackwardData, .geometry = op.geometry.adjoint()};
}
[[nodiscard]] inline ConvolutionProblem problem_of(const TransposedConvolutionBackwardData& op) {
  return {.pass = ConvolutionPass::kForward, .geometry = op.geometry.adjoint()};
}
[[nodiscard]] inline ConvolutionProblem problem_of(const TransposedConvolutionBackwardWeights& op) {
  return {.pass = ConvolutionPass::kBackwardWeights, .geometry = op.geometry.adjoint()};
}

/// Whether padding channels leave the groups whole: there are none, or each channel is a group, and
/// so is each padding channel.
[[nodiscard]] bool has_whole_groups(const ConvolutionGeometry& geometry);

/// For messages: "the forward convolution of 32 x 64x56x56 to 128x56x56 (kernel 3x3)".
[[nodiscard]] std::string describe(const ConvolutionProblem& problem);

/// The tensors of the graphs below. The gradient of a tensor has the tensor's id.
inline constexpr std::int64_t kTensorX = 'x';
inline constexpr std::int64_t kTensorW = 'w';
inline constexpr std::int64_t kTensorY = 'y';
inline constexpr std::int64_t kTensorBias = 'b';

/// The convolution alone, without bias and ReLU. With Precision::kBf16 all tensors are bfloat16,
/// the gradient of the weights too: cuDNN 9.19 has no engine that would write it as float.
[[nodiscard]] CudnnGraph plain_graph(const CudnnTarget& target, Precision precision,
                                     const ConvolutionProblem& problem);

/// The forward pass with bias and, if it has one, ReLU, in one kernel. cuDNN has ready-made engines
/// for just this: a bias of the tensors' type, float in between. (For a ReLU without a bias, and
/// for a float bias on bfloat16, it would compile some at run time.) Requires: a forward pass with
/// a bias.
[[nodiscard]] CudnnGraph fused_graph(const CudnnTarget& target, Precision precision,
                                     const ConvolutionProblem& problem);

}  // namespace spillway::cuda
