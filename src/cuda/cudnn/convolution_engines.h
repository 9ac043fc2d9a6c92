#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "src/cuda/cudnn/convolution_graph.h"
#include "src/cuda/cudnn/cudnn_engine.h"

namespace spillway::cuda {

/// Which of cuDNN's engines may be used.
struct EngineRules {
  Precision precision = Precision::kFp32;
  bool deterministic = false;  ///< only engines that give the same bits each time
  um::Bytes max_workspace;
};

/// Whether an engine may be used. Engines that are compiled at run time may not: building one takes
/// half a second, and a network has hundreds of convolutions. Nor may those that sum in less than
/// float and, for Precision::kFp32, those of the tensor cores, which would multiply as TF32.
[[nodiscard]] bool is_permitted(const EngineConfig& engine, const EngineRules& rules);

/// One way to run a convolution.
class ConvolutionEngine : public ListedEngine {
 public:
  /// `scratch`: what its kernel needs besides the engine's workspace.
  ConvolutionEngine(EngineConfig config, bool is_fused, um::Bytes scratch);

  /// "engine67_k2=5_k13=0", "fused_engine51_..."
  [[nodiscard]] const std::string& name() const { return name_; }
  /// The same for all settings of an engine: its number, from -1 down where it is fused.
  [[nodiscard]] std::int64_t number() const {
    return is_fused_ ? -1 - config().engine : config().engine;
  }
  /// With the scratch, as counted_workspace() counts.
  [[nodiscard]] um::Bytes workspace() const { return workspace_; }
  /// Whether the engine adds the bias and applies the ReLU. If not, who runs it does.
  [[nodiscard]] bool is_fused() const { return is_fused_; }
  [[nodiscard]] bool uses_tensor_cores() const { return config().uses_tensor_cores; }

 private:
  bool is_fused_;
  std::string name_;
  um::Bytes workspace_;
};

using OfferedEngines = std::vector<std::unique_ptr<ConvolutionEngine>>;

/// What cuDNN offers for each convolution, asked once (some 50 ms) and kept.
///
/// Thread safety: none.
class ConvolutionEngines {
 public:
  /// Requires: what `target` stands for outlives this.
  ConvolutionEngines(CudnnTarget target, EngineRules rules);

  /// At least one; the first takes the least workspace (choose_engines()). They live as long as
  /// this. Throws: um::Error when cuDNN has none that the rules permit, or when padding channels
  /// would cut its groups.
  [[nodiscard]] const OfferedEngines& offered(const ConvolutionProblem& problem);

  /// The one of offered(problem) with that name. Requires: there is one.
  [[nodiscard]] const ConvolutionEngine& named(const ConvolutionProblem& problem,
                                               std::string_view name);

 private:
  // Graphs outlive the engines that were made for them.
  struct Offer {
    ConvolutionProblem problem;
    std::vector<std::unique_ptr<CudnnGraph>> graphs;
    OfferedEngines engines;
  };

  // Everything permitted, the fused ones first, by expected speed.
  [[nodiscard]] Offer list(const ConvolutionProblem& problem) const;

  CudnnTarget target_;
  EngineRules rules_;
  std::vector<std::unique_ptr<Offer>> offers_;
};

}  // namespace spillway::cuda
