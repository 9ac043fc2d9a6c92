#include "src/cuda/cudnn/convolution_run.h"
#include "src/cuda/kernels/bias_relu.h"
#include "src/cuda/kernels/channel_sums.h"
#include "src/cuda/kernels/kernels.h"
#include "src/ops/function_kernel.h"

namespace spillway::cuda {

um::Bytes more_workspace(const TransposedConvolutionBackwardWeights& op) {
  constexpr um::Bytes kAlignment{256};
  if (!op.geometry.bias) return {};
  return um::round_up(channel_sums_workspace(matrix_of(op.geometry.y)), kAlignment);
}

std::unique_ptr<Kernel> make_kernel(const Machine& machine, const TransposedConvolutionForward& op,
                                    std::string_view algorithm) {
  const ConvolutionRun run{machine, op, algorithm};
  return kernel_of(op, [run, op](const auto& operands, const auto& arguments) {
    run.execute_with_weights({kTensorY, operands.in.x}, operands.in.parameters,
                             {kTensorX, operands.out.y}, arguments.workspace);
    if (!op.geometry.bias && !op.relu) return;
    add_bias_relu(run.machine(), matrix_of(op.geometry.y), operands.out.y,
                  float_bias(run.parameters(), operands.in.parameters), op.relu);
  });
}

std::unique_ptr<Kernel> make_kernel(const Machine& machine,
                                    const TransposedConvolutionBackwardData& op,
                                    std::string_view algorithm) {
  const ConvolutionRun run{machine, op, algorithm};
  return kernel_of(op, [run](const auto& operands, const auto& arguments) {
    run.execute_with_weights({kTensorX, operands.in.dy}, operands.in.parameters,
                             {kTensorY, operands.out.dx}, arguments.workspace);
  });
}

std::unique_ptr<Kernel> make_kernel(const Machine& machine,
                                    const TransposedConvolutionBackwardWeights& op,
                                    std::string_view algorithm) {
  const ConvolutionRun run{machine, op, algorithm};
  return kernel_of(op, [run, op](const auto& operands, const auto& arguments) {
    run.execute_gradient(operands.in.dy, operands.in.x, operands.out.dparameters,
                         arguments.workspace + more_workspace(op).count());
    if (!op.geometry.bias) return;
    channel_sums(run.machine(), matrix_of(op.geometry.y), operands.in.dy, arguments.workspace,
                 float_bias(run.parameters(), operands.out.dparameters));
  });
}

}  // namespace spillway::cuda
