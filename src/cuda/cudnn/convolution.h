#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "src/cuda/cudnn/convolution_engines.h"
#include "src/cuda/cudnn/convolution_graph.h"
#include "src/cuda/layout/layout.h"
#include "src/cuda/layout/parameter_layout.h"
#include "src/ops/backend.h"
#include "um/bytes.h"

namespace spillway::cuda {

/// What a convolution's kernel needs besides its engine's workspace, in this order at the start of
/// the workspace; multiples of 256 bytes.
struct ConvolutionScratch {
  um::Bytes gradient;  ///< the weights' gradient in bfloat16, before it becomes float
  um::Bytes sums;      ///< partial sums of the biases' gradient

  [[nodiscard]] um::Bytes total() const { return gradient + sums; }
};

[[nodiscard]] ConvolutionScratch scratch_of(Precision precision, const ConvolutionProblem& problem);

/// One of cuDNN's engines made ready to run a convolution or a transposed one.
class ConvolutionRun {
 public:
  /// Of one of the three operations of either, by one of algorithms_of(machine, op).
  template <class Op>
  ConvolutionRun(const Machine& machine, const Op& op, std::string_view algorithm)
      : machine_{machine},
        problem_{problem_of(op)},
        parameters_{machine.precision, op.geometry.parameters()},
        engine_{machine.engines->named(problem_, algorithm)} {}

  [[nodiscard]] const Machine& machine() const { return machine_; }
  [[nodiscard]] const ConvolutionProblem& problem() const { return problem_; }
  /// The block's layout.
  [[nodiscard]] const ParameterLayout& parameters() const { return parameters_; }
  [[nodiscard]] const ConvolutionEngine& engine() const { return engine_; }

  void execute(std::span<const TensorAddress> tensors, std::byte* workspace) const {
    naming([&] { return describe(problem_); },
           [&] { engine_.plan().execute(machine_.cudnn, tensors, workspace); });
  }
  /// Of a pass that makes tensor `to` of tensor `from` with the weights of `block`.
  void execute_with_weights(const TensorAddress& from, std::byte* block, const TensorAddress& to,
                            std::byte* workspace) const;
  /// Of a pass that makes the gradient of the weights, from operands of the convolution: as floats,
  /// whatever the engine writes. The scratch is at the start of `workspace`.
  void execute_gradient(std::byte* x, std::byte* dy, std::byte* block, std::byte* workspace) const;

 private:
  Machine machine_;
  ConvolutionProblem problem_;
  ParameterLayout parameters_;
  const ConvolutionEngine& engine_;  // lives as long as the machine's engines
};

/// What the kernel of an operation needs at the start of its workspace, besides what its problem
/// does: partial sums of the biases' gradient, which a transposed convolution's adjoint has not.
template <class Op>
[[nodiscard]] um::Bytes more_workspace(const Op& /*op*/) {
  return {};
}
[[nodiscard]] um::Bytes more_workspace(const TransposedConvolutionBackwardWeights& op);

/// What cuDNN offers for `problem`, for a kernel that needs `more` workspace than that.
[[nodiscard]] std::vector<AlgorithmInfo> offered(const Machine& machine,
                                                 const ConvolutionProblem& problem, um::Bytes more);

/// The ways to run a convolution or a transposed one within the machine's max_workspace, the
/// baseline first: least workspace.
template <class Op>
[[nodiscard]] std::vector<AlgorithmInfo> algorithms_of(const Machine& machine, const Op& op) {
  return offered(machine, problem_of(op), more_workspace(op));
}

}  // namespace spillway::cuda
