#include "src/cuda/cudnn/convolution_run.h"
#include "src/cuda/kernels/bias_relu.h"
#include "src/cuda/kernels/channel_sums.h"
#include "src/cuda/kernels/kernels.h"
#include "src/ops/function_kernel.h"

namespace spillway::cuda {

std::unique_ptr<Kernel> make_kernel(const Machine& machine, const ConvolutionForward& op,
                                    std::string_view algorithm) {
  const ConvolutionRun run{machine, op, algorithm};
  return kernel_of(op, [run](const auto& operands, const auto& arguments) {
    std::byte* const block = operands.in.parameters;
    std::byte* const y = operands.out.y;
    std::vector<TensorAddress> tensors{{kTensorX, operands.in.x},
                                       {kTensorW, kernel_weights(run.parameters(), block)},
                                       {kTensorY, y}};
    const bool is_fused = run.engine().is_fused();
    if (is_fused) tensors.push_back({kTensorBias, kernel_bias(run.parameters(), block)});
    run.execute(tensors, arguments.workspace);
    if (is_fused) return;
    add_bias_relu(run.machine(), matrix_of(run.problem().geometry.y), y,
                  float_bias(run.parameters(), block), run.problem().relu);
  });
}

std::unique_ptr<Kernel> make_kernel(const Machine& machine, const ConvolutionBackwardData& op,
                                    std::string_view algorithm) {
  const ConvolutionRun run{machine, op, algorithm};
  return kernel_of(op, [run](const auto& operands, const auto& arguments) {
    run.execute_with_weights({kTensorY, operands.in.dy}, operands.in.parameters,
                             {kTensorX, operands.out.dx}, arguments.workspace);
  });
}

std::unique_ptr<Kernel> make_kernel(const Machine& machine, const ConvolutionBackwardWeights& op,
                                    std::string_view algorithm) {
  const ConvolutionRun run{machine, op, algorithm};
  return kernel_of(op, [run](const auto& operands, const auto& arguments) {
    run.execute_gradient(operands.in.x, operands.in.dy, operands.out.dparameters,
                         arguments.workspace);
    const ConvolutionGeometry& g = run.problem().geometry;
    if (!g.bias) return;
    const ConvolutionScratch scratch = scratch_of(run.machine().precision, run.problem());
    channel_sums(run.machine(), matrix_of(g.y), operands.in.dy,
                 arguments.workspace + scratch.gradient.count(),
                 float_bias(run.parameters(), operands.out.dparameters));
  });
}

}  // namespace spillway::cuda
