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

/// Scratch of a convolution's kernel beyond the engine's own workspace. The members are in this
/// order at the start of the workspace; each is a multiple of 256 bytes.
struct ConvolutionScratch {
  um::Bytes gradient;  ///< the weights' gradient in bfloat16, before conversion to float
  um::Bytes sums;      ///< partial sums of the bias gradient

  [[nodiscard]] um::Bytes total() const { return gradient + sums; }
};

[[nodiscard]] ConvolutionScratch scratch_of(Precision precision, const ConvolutionProblem& problem);

/// A cuDNN engine prepared to run a convolution or a transposed one.
class ConvolutionRun {
 public:
  /// `op` is one of the three operations; `algorithm` is one of algorithms_of(machine, op).
  template <class Op>
  ConvolutionRun(const Machine& machine, const Op& op, std::string_view algorithm)
      : machine_{machine},
        problem_{problem_of(op)},
        parameters_{machine.precision, op.geometry.parameters()},
        engine_{machine.engines->named(problem_, algorithm)} {}

  [[nodiscard]] const Machine& machine() const { return machine_; }
  [[nodiscard]] const ConvolutionProblem& problem() const { return problem_; }
  /// Returns the layout of the parameter block.
  [[nodiscard]] const ParameterLayout& parameters() const { return parameters_; }
  [[nodiscard]] const ConvolutionEngine& engine() const { return engine_; }

  void execute(std::span<const TensorAddress> tensors, std::byte* workspace) const {
    naming([&] { return describe(problem_); },
           [&] { engine_.plan().execute(machine_.cudnn, tensors, workspace); });
  }
  /// Runs a pass that computes tensor `to` from tensor `from` with the weights of `block`.
  void execute_with_weights(const TensorAddress& from, std::byte* block, const TensorAddress& to,
                            std::byte* workspace) const;
  /// Runs a pass that computes the weights' gradient as floats, whatever the engine writes. `x` and
  /// `dy` are the convolution's; the scratch is at the start of `workspace`.
  void execute_gradient(std::byte* x, std::byte* dy, std::byte* block, std::byte* workspace) const;

 private:
  Machine machine_;
  ConvolutionProblem problem_;
  ParameterLayout parameters_;
  const ConvolutionEngine& engine_;  // owned by the machine's engines
};

/// Returns further workspace of an operation's kernel: partial sums of the bias gradient, since a
/// transposed convolution's adjoint has no bias.
template <class Op>
[[nodiscard]] um::Bytes more_workspace(const Op& /*op*/) {
  return {};
}
[[nodiscard]] um::Bytes more_workspace(const TransposedConvolutionBackwardWeights& op);

/// Returns the algorithms that cuDNN offers for `problem`, each with `more` additional workspace.
[[nodiscard]] std::vector<AlgorithmInfo> offered(const Machine& machine,
                                                 const ConvolutionProblem& problem, um::Bytes more);

/// Returns the algorithms of a convolution or transposed convolution that fit in the machine's
/// max_workspace. The first is the baseline, with the smallest workspace.
template <class Op>
[[nodiscard]] std::vector<AlgorithmInfo> algorithms_of(const Machine& machine, const Op& op) {
  return offered(machine, problem_of(op), more_workspace(op));
}

}  // namespace spillway::cuda
