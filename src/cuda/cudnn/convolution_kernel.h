#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "src/cuda/cudnn/convolution_engines.h"
#include "src/cuda/cudnn/convolution_scratch.h"
#include "src/cuda/layout/cuda_kernel.h"
#include "src/cuda/layout/kernel_weights.h"
#include "src/cuda/layout/layout.h"

namespace spillway::cuda {

/// A kernel around one of cuDNN's engines, of a convolution or a transposed one: `parameters` is
/// the block's layout.
class ConvolutionKernel : public CudaKernel {
 public:
  ConvolutionKernel(const Machine& machine, const ConvolutionProblem& problem,
                    const ParameterSpec& parameters, std::string_view algorithm)
      : CudaKernel{machine, 3},
        problem_{problem},
        parameters_{machine.precision, parameters},
        engine_{machine.engines->named(problem, algorithm)} {}

 protected:
  [[nodiscard]] const ConvolutionProblem& problem() const { return problem_; }
  [[nodiscard]] const ParameterLayout& parameters() const { return parameters_; }
  [[nodiscard]] const ConvolutionEngine& engine() const { return engine_; }

  void execute(std::span<const TensorAddress> tensors, std::byte* workspace) const {
    naming([&] { return describe(problem_); },
           [&] { engine_.plan().execute(machine().cudnn, tensors, workspace); });
  }
  /// Of a pass that makes tensor `to` of tensor `from` with the weights of `block`.
  void execute_with_weights(const TensorAddress& from, std::byte* block, const TensorAddress& to,
                            std::byte* workspace) const;
  /// Of a pass that makes the gradient of the weights, from operands of the convolution: as floats,
  /// whatever the engine writes. The scratch is at the start of `workspace`.
  void execute_gradient(std::byte* x, std::byte* dy, std::byte* block, std::byte* workspace) const;

 private:
  ConvolutionProblem problem_;
  ParameterLayout parameters_;
  const ConvolutionEngine& engine_;
};

/// What cuDNN offers for `problem`, for a kernel that needs `more` workspace than that.
[[nodiscard]] std::vector<AlgorithmInfo> offered(const Machine& machine,
                                                 const ConvolutionProblem& problem,
                                                 um::Bytes more = {});

}  // namespace spillway::cuda
