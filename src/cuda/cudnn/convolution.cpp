#include "src/cuda/cudnn/convolution_kernel.h"
#include "src/cuda/kernels/bias_relu.h"
#include "src/cuda/kernels/channel_sums.h"
#include "src/cuda/kernels/kernels.h"

namespace spillway::cuda {
namespace {

class ForwardKernel final : public ConvolutionKernel {
 public:
  using ConvolutionKernel::ConvolutionKernel;

 private:
  void enqueue(const KernelArguments& arguments) override {
    const auto operands = operands_of<ConvolutionForward>(arguments.operands);
    std::byte* const block = operands.in.parameters;
    std::byte* const y = operands.out.y;
    std::vector<TensorAddress> tensors{
        {kTensorX, operands.in.x}, {kTensorW, kernel_weights(parameters(), block)}, {kTensorY, y}};
    if (engine().is_fused()) tensors.push_back({kTensorBias, kernel_bias(parameters(), block)});
    execute(tensors, arguments.workspace);
    if (engine().is_fused()) return;
    add_bias_relu(machine(), matrix_of(problem().geometry.y), y, float_bias(parameters(), block),
                  problem().relu);
  }
};

class BackwardDataKernel final : public ConvolutionKernel {
 public:
  using ConvolutionKernel::ConvolutionKernel;

 private:
  void enqueue(const KernelArguments& arguments) override {
    const auto operands = operands_of<ConvolutionBackwardData>(arguments.operands);
    execute_with_weights({kTensorY, operands.in.dy}, operands.in.parameters,
                         {kTensorX, operands.out.dx}, arguments.workspace);
  }
};

class BackwardWeightsKernel final : public ConvolutionKernel {
 public:
  using ConvolutionKernel::ConvolutionKernel;

 private:
  void enqueue(const KernelArguments& arguments) override {
    const auto operands = operands_of<ConvolutionBackwardWeights>(arguments.operands);
    execute_gradient(operands.in.x, operands.in.dy, operands.out.dparameters, arguments.workspace);
    const ConvolutionGeometry& g = problem().geometry;
    if (!g.bias) return;
    const ConvolutionScratch scratch = scratch_of(machine().precision, problem());
    channel_sums(machine(), matrix_of(g.y), operands.in.dy,
                 arguments.workspace + scratch.gradient.count(),
                 float_bias(parameters(), operands.out.dparameters));
  }
};

template <class KernelOfPass, class Op>
std::unique_ptr<Kernel> make(const Machine& machine, const Op& op, std::string_view algorithm) {
  return std::make_unique<KernelOfPass>(machine, problem_of(op), op.geometry.parameters(),
                                        algorithm);
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
  return make<ForwardKernel>(machine, op, algorithm);
}
std::unique_ptr<Kernel> make_kernel(const Machine& machine, const ConvolutionBackwardData& op,
                                    std::string_view algorithm) {
  return make<BackwardDataKernel>(machine, op, algorithm);
}
std::unique_ptr<Kernel> make_kernel(const Machine& machine, const ConvolutionBackwardWeights& op,
                                    std::string_view algorithm) {
  return make<BackwardWeightsKernel>(machine, op, algorithm);
}

}  // namespace spillway::cuda
