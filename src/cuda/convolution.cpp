#include "src/cuda/bias_relu.h"
#include "src/cuda/channel_sums.h"
#include "src/cuda/convolution_engines.h"
#include "src/cuda/convolution_scratch.h"
#include "src/cuda/cuda_kernel.h"
#include "src/cuda/kernel_weights.h"
#include "src/cuda/kernels.h"

namespace spillway::cuda {
namespace {

// Runs one of cuDNN's engines.
class ConvolutionKernel : public CudaKernel {
 public:
  ConvolutionKernel(const Machine& machine, const ConvolutionProblem& problem,
                    std::string_view algorithm)
      : CudaKernel{machine, 3},
        problem_{problem},
        parameters_{machine.precision, problem.geometry.parameters()},
        engine_{machine.engines->named(problem, algorithm)} {}

 protected:
  [[nodiscard]] const ConvolutionGeometry& geometry() const { return problem_.geometry; }
  [[nodiscard]] const ConvolutionProblem& problem() const { return problem_; }
  [[nodiscard]] const ParameterLayout& parameters() const { return parameters_; }
  [[nodiscard]] const ConvolutionEngine& engine() const { return engine_; }

  void execute(std::span<const TensorAddress> tensors, std::byte* workspace) const {
    naming([&] { return describe(problem_); },
           [&] { engine_.plan().execute(machine().cudnn, tensors, workspace); });
  }

 private:
  ConvolutionProblem problem_;
  ParameterLayout parameters_;
  const ConvolutionEngine& engine_;
};

class ForwardKernel final : public ConvolutionKernel {
 public:
  using ConvolutionKernel::ConvolutionKernel;

 private:
  void enqueue(const KernelArguments& arguments) override {
    std::byte* const block = arguments.operands[1];
    std::byte* const y = arguments.operands[2];
    std::vector<TensorAddress> tensors{{kTensorX, arguments.operands[0]},
                                       {kTensorW, kernel_weights(parameters(), block)},
                                       {kTensorY, y}};
    if (engine().is_fused()) tensors.push_back({kTensorBias, kernel_bias(parameters(), block)});
    execute(tensors, arguments.workspace);
    if (engine().is_fused()) return;
    add_bias_relu(machine(), matrix_of(geometry().y), y, float_bias(parameters(), block),
                  problem().relu);
  }
};

class BackwardDataKernel final : public ConvolutionKernel {
 public:
  using ConvolutionKernel::ConvolutionKernel;

 private:
  void enqueue(const KernelArguments& arguments) override {
    const auto& operands = arguments.operands;
    const std::array<TensorAddress, 3> tensors{
        {{kTensorY, operands[0]},
         {kTensorW, kernel_weights(parameters(), operands[1])},
         {kTensorX, operands[2]}}};
    execute(tensors, arguments.workspace);
  }
};

class BackwardWeightsKernel final : public ConvolutionKernel {
 public:
  using ConvolutionKernel::ConvolutionKernel;

 private:
  void enqueue(const KernelArguments& arguments) override {
    const auto& operands = arguments.operands;
    const ConvolutionScratch scratch = scratch_of(machine().precision, problem());
    std::byte* const gradient = operands[2];
    std::byte* const sums = arguments.workspace + scratch.gradient.count();
    const bool is_bf16 = parameters().has_bf16_copy();
    std::byte* const written = is_bf16 ? arguments.workspace : gradient;
    const std::array<TensorAddress, 3> tensors{
        {{kTensorX, operands[0]}, {kTensorY, operands[1]}, {kTensorW, written}}};
    execute(tensors, arguments.workspace + scratch.total().count());
    if (is_bf16) {
      widen(machine(), parameters().weight_count(), written, reinterpret_cast<float*>(gradient));
    }
    if (geometry().bias) {
      channel_sums(machine(), matrix_of(geometry().y), operands[1], sums,
                   float_bias(parameters(), gradient));
    }
  }
};

std::vector<AlgorithmInfo> offered(const Machine& machine, const ConvolutionProblem& problem) {
  std::vector<AlgorithmInfo> algorithms;
  for (const auto& engine : machine.engines->offered(problem)) {
    algorithms.push_back({.name = engine->name(), .workspace = engine->workspace()});
  }
  return algorithms;
}

}  // namespace

std::vector<AlgorithmInfo> algorithms_of(const Machine& machine, const ConvolutionForward& op) {
  return offered(machine, problem_of(op));
}
std::vector<AlgorithmInfo> algorithms_of(const Machine& machine,
                                         const ConvolutionBackwardData& op) {
  return offered(machine, problem_of(op));
}
std::vector<AlgorithmInfo> algorithms_of(const Machine& machine,
                                         const ConvolutionBackwardWeights& op) {
  return offered(machine, problem_of(op));
}

std::unique_ptr<Kernel> make_kernel(const Machine& machine, const ConvolutionForward& op,
                                    std::string_view algorithm) {
  return std::make_unique<ForwardKernel>(machine, problem_of(op), algorithm);
}
std::unique_ptr<Kernel> make_kernel(const Machine& machine, const ConvolutionBackwardData& op,
                                    std::string_view algorithm) {
  return std::make_unique<BackwardDataKernel>(machine, problem_of(op), algorithm);
}
std::unique_ptr<Kernel> make_kernel(const Machine& machine, const ConvolutionBackwardWeights& op,
                                    std::string_view algorithm) {
  return std::make_unique<BackwardWeightsKernel>(machine, problem_of(op), algorithm);
}

}  // namespace spillway::cuda
