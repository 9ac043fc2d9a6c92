#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "nets/network.h"
#include "src/cuda/cudnn/attention_graph.h"
#include "src/cuda/cudnn/convolution_engines.h"
#include "src/ops/backend.h"

namespace spillway::cuda {

/// One pass of a network's convolution, and its algorithms.
struct PlannedConvolution {
  std::string layer;
  ConvolutionProblem problem;
  std::vector<AlgorithmInfo> algorithms;
};

/// Returns what a CudaBackend would offer for all passes of all convolutions of `network`. It asks
/// the installed cuDNN and needs neither a device nor a driver. Layers with equal geometry appear
/// once, under the first one's name. `properties` describe the device (CudnnTarget::described()).
/// Throws: CudnnError if cuDNN does not accept them; um::Error. Complexity: about 50 ms per entry.
[[nodiscard]] std::vector<PlannedConvolution> plan_convolutions(std::string_view properties,
                                                                const EngineRules& rules,
                                                                const nets::Network& network,
                                                                std::size_t batch);

/// One pass of a network's attention, and its algorithms.
struct PlannedAttention {
  std::string layer;
  AttentionProblem problem;
  std::vector<AlgorithmInfo> algorithms;  ///< our kernel, then cuDNN's engines
  std::string refusal;                    ///< why cuDNN offers no engine
};

/// Returns the same for all attention of `network`, in training without dropout. Throws: CudnnError
/// if cuDNN does not accept `properties`, but not if it has no engine. Complexity: about 2 s per
/// engine, for compilation.
[[nodiscard]] std::vector<PlannedAttention> plan_attention(std::string_view properties,
                                                           const EngineRules& rules,
                                                           const nets::Network& network,
                                                           std::size_t batch);

/// Returns one line: "block1.attention forward default:0 engine2_k24=7:0", possibly with
/// "(REFUSAL)" at the end.
[[nodiscard]] std::string to_line(const PlannedAttention& planned);

/// Returns one line: "conv1 forward engine62_k2=5:1048576 engine0:1048576".
[[nodiscard]] std::string to_line(const PlannedConvolution& planned);

}  // namespace spillway::cuda
