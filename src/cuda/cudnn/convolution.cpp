#include "src/cuda/cudnn/convolution.h"

#include <array>

#include "src/cuda/kernels/kernels.h"
#include "src/cuda/layout/layout.h"
#include "src/cuda/layout/parameter_layout.h"
#include "src/ops/backend.h"

namespace spillway::cuda {

ConvolutionScratch scratch_of(Precision precision, const ConvolutionProblem& problem) {
  constexpr um::Bytes kAlignment{256};
  constexpr std::uint64_t kBfloat16 = 2;
  if (problem.pass != ConvolutionPass::kBackwardWeights) return {};
  const ConvolutionGeometry& g = problem.geometry;
  ConvolutionScratch scratch;
  if (precision == Precision::kBf16) {
    const ParameterLayout layout{precision, g.parameters()};
    scratch.gradient = um::round_up(um::Bytes{layout.weight_count() * kBfloat16}, kAlignment);
  }
  if (g.bias) scratch.sums = um::round_up(channel_sums_workspace(matrix_of(g.y)), kAlignment);
  return scratch;
}

void ConvolutionRun::execute_with_weights(const TensorAddress& from, std::byte* block,
                                          const TensorAddress& to, std::byte* workspace) const {
  const std::array<TensorAddress, 3> tensors{
      {from, {kTensorW, kernel_weights(parameters_, block)}, to}};
  execute(tensors, workspace);
}

void ConvolutionRun::execute_gradient(std::byte* x, std::byte* dy, std::byte* block,
                                      std::byte* workspace) const {
  const ConvolutionScratch scratch = scratch_of(machine_.precision, problem_);
  const bool is_bf16 = parameters_.has_bf16_copy();
  std::byte* const written = is_bf16 ? workspace : block;
  const std::array<TensorAddress, 3> tensors{{{kTensorX, x}, {kTensorY, dy}, {kTensorW, written}}};
  execute(tensors, workspace + scratch.total().count());
  if (!is_bf16) return;
  widen(machine_, parameters_.weight_count(), written, reinterpret_cast<float*>(block));
}

std::vector<AlgorithmInfo> offered(const Machine& machine, const ConvolutionProblem& problem,
                                   um::Bytes more) {
  std::vector<AlgorithmInfo> algorithms;
  for (const auto& engine : machine.engines->offered(problem)) {
    algorithms.push_back({.name = engine->name(), .workspace = engine->workspace() + more});
  }
  return algorithms;
}

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
