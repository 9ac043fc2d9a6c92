#include "src/cuda/cudnn/convolution_scratch.h"

#include "src/cuda/kernels/channel_sums.h"
#include "src/cuda/layout/layout.h"
#include "src/cuda/layout/parameter_layout.h"

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

}  // namespace spillway::cuda
