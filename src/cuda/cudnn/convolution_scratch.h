#pragma once

#include "src/cuda/cudnn/convolution_graph.h"
#include "um/bytes.h"

namespace spillway::cuda {

/// What a convolution's kernel needs besides its engine's workspace, in this order at the start of
/// the workspace; multiples of 256 bytes.
struct ConvolutionScratch {
  um::Bytes gradient;  ///< the weights' gradient in bfloat16, before it becomes float
  um::Bytes sums;      ///< partial sums of the biases' gradient

  [[nodiscard]] um::Bytes total() const { return gradient + sums; }
};

[[nodiscard]] ConvolutionScratch scratch_of(Precision precision, const ConvolutionProblem& problem);

}  // namespace spillway::cuda
