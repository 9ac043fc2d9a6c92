#include "src/cuda/cudnn/convolution_kernel.h"
#include "src/cuda/kernels/bias_relu.h"
#include "src/cuda/kernels/channel_sums.h"
#include "src/cuda/kernels/kernels.h"

namespace spillway::cuda {
namespace {

// Passes of the adjoint, the convolution that makes x of y: forward is its gradient of the data,
// backward its forward pass. Its engines know of no bias.

ConvolutionProblem problem_of(const TransposedConvolutionForward& op) {
  return {.pass = ConvolutionPass::kBackwardData, .geometry = op.geometry.adjoint()};
}
ConvolutionProblem problem_of(const TransposedConvolutionBackwardData& op) {
  return {.pass = ConvolutionPass::kForward, .geometry = op.geometry.adjoint()};
}
ConvolutionProblem problem_of(const TransposedConvolutionBackwardWeights& op) {
  return {.pass = ConvolutionPass::kBackwardWeights, .geometry = op.geometry.adjoint()};
}

// At the start of the workspace of the gradient of the weights.
um::Bytes sums_bytes(const TransposedConvolutionGeometry& g) {
  constexpr um::Bytes kAlignment{256};
  return g.bias ? um::round_up(channel_sums_workspace(matrix_of(g.y)), kAlignment) : um::Bytes{};
}

template <class Op>
class TransposedKernel : public ConvolutionKernel {
 public:
  TransposedKernel(const Machine& machine, const Op& op, std::string_view algorithm)
      : ConvolutionKernel{machine, problem_of(op), op.geometry.parameters(), algorithm}, op_{op} {}

 protected:
  [[nodiscard]] const Op& op() const { return op_; }

 private:
  Op op_;
};

class TransposedForward final : public TransposedKernel<TransposedConvolutionForward> {
 public:
  using TransposedKernel::TransposedKernel;

 private:
  void enqueue(const KernelArguments& arguments) override {
    const auto operands = operands_of<TransposedConvolutionForward>(arguments.operands);
    execute_with_weights({kTensorY, operands.in.x}, operands.in.parameters,
                         {kTensorX, operands.out.y}, arguments.workspace);
    if (!op().geometry.bias && !op().relu) return;
    add_bias_relu(machine(), matrix_of(op().geometry.y), operands.out.y,
                  float_bias(parameters(), operands.in.parameters), op().relu);
  }
};

class TransposedBackwardData final : public TransposedKernel<TransposedConvolutionBackwardData> {
 public:
  using TransposedKernel::TransposedKernel;

 private:
  void enqueue(const KernelArguments& arguments) override {
    const auto operands = operands_of<TransposedConvolutionBackwardData>(arguments.operands);
    execute_with_weights({kTensorX, operands.in.dy}, operands.in.parameters,
                         {kTensorY, operands.out.dx}, arguments.workspace);
  }
};

class TransposedBackwardWeights final
    : public TransposedKernel<TransposedConvolutionBackwardWeights> {
 public:
  using TransposedKernel::TransposedKernel;

 private:
  void enqueue(const KernelArguments& arguments) override {
    const auto operands = operands_of<TransposedConvolutionBackwardWeights>(arguments.operands);
    const TransposedConvolutionGeometry& g = op().geometry;
    execute_gradient(operands.in.dy, operands.in.x, operands.out.dparameters,
                     arguments.workspace + sums_bytes(g).count());
    if (!g.bias) return;
    channel_sums(machine(), matrix_of(g.y), operands.in.dy, arguments.workspace,
                 float_bias(parameters(), operands.out.dparameters));
  }
};

}  // namespace

std::vector<AlgorithmInfo> algorithms_of(const Machine& machine,
                                         const TransposedConvolutionForward& op) {
  return offered(machine, problem_of(op));
}
std::vector<AlgorithmInfo> algorithms_of(const Machine& machine,
                                         const TransposedConvolutionBackwardData& op) {
  return offered(machine, problem_of(op));
}
std::vector<AlgorithmInfo> algorithms_of(const Machine& machine,
                                         const TransposedConvolutionBackwardWeights& op) {
  return offered(machine, problem_of(op), sums_bytes(op.geometry));
}

std::unique_ptr<Kernel> make_kernel(const Machine& machine, const TransposedConvolutionForward& op,
                                    std::string_view algorithm) {
  return std::make_unique<TransposedForward>(machine, op, algorithm);
}
std::unique_ptr<Kernel> make_kernel(const Machine& machine,
                                    const TransposedConvolutionBackwardData& op,
                                    std::string_view algorithm) {
  return std::make_unique<TransposedBackwardData>(machine, op, algorithm);
}
std::unique_ptr<Kernel> make_kernel(const Machine& machine,
                                    const TransposedConvolutionBackwardWeights& op,
                                    std::string_view algorithm) {
  return std::make_unique<TransposedBackwardWeights>(machine, op, algorithm);
}

}  // namespace spillway::cuda
