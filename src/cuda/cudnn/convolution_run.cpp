#include "src/cuda/cudnn/convolution_run.h"

#include <array>

#include "src/cuda/kernels/bias_relu.h"

namespace spillway::cuda {

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

}  // namespace spillway::cuda
