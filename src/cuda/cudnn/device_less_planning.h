#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "nets/network.h"
#include "src/cuda/cudnn/attention_graph.h"
#include "src/cuda/cudnn/convolution_engines.h"
#include "src/ops/backend.h"

namespace spillway::cuda {

/// One pass of a network's convolution, and the ways to run it.
struct PlannedConvolution {
  std::string layer;
  ConvolutionProblem problem;
  std::vector<AlgorithmInfo> algorithms;
};

/// What a CudaBackend would offer for all passes of all convolutions of `network`, the installed
/// cuDNN being asked about a device that need not be there, nor a driver; layers with the same
/// geometry are in the list once, under the first one's name. `properties` describe the device
/// (CudnnTarget::described()). Throws: CudnnError when cuDNN does not take them; um::Error.
/// Complexity: some 50 ms for each entry.
[[nodiscard]] std::vector<PlannedConvolution> plan_convolutions(std::string_view properties,
                                                                const EngineRules& rules,
                                                                const nets::Network& network,
                                                                std::size_t batch);

/// One pass of a network's attention, and the ways to run it.
struct PlannedAttention {
  std::string layer;
  AttentionProblem problem;
  std::vector<AlgorithmInfo> algorithms;  ///< our kernel, and what cuDNN offers
  std::string refusal;                    ///< why cuDNN offers nothing
};

/// The same for all attention of `network`, in training without dropout. Throws: CudnnError when
/// cuDNN does not take `properties`; nothing where it has no engine.
/// Complexity: some 2 s for each engine, which are compiled.
[[nodiscard]] std::vector<PlannedAttention> plan_attention(std::string_view properties,
                                                           const EngineRules& rules,
                                                           const nets::Network& network,
                                                           std::size_t batch);

/// "block1.attention forward default:0 engine2_k24=7:0", or at the end "(REFUSAL)".
[[nodiscard]] std::string to_line(const PlannedAttention& planned);

/// The entry in one line: "conv1 forward engine62_k2=5:1048576 engine0:1048576".
[[nodiscard]] std::string to_line(const PlannedConvolution& planned);

}  // namespace spillway::cuda
