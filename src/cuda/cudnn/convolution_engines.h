#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "src/cuda/cudnn/convolution_graph.h"
#include "src/cuda/cudnn/cudnn_engine.h"
#include "um/bytes.h"

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

/// Workspaces are counted in whole units of this size, and at least one: so an engine that takes
/// 131 bytes is not thought larger than one that takes none and is ten times as slow.
inline constexpr um::Bytes kWorkspaceUnit{1U << 20U};

/// What an engine's workspace counts as.
[[nodiscard]] constexpr um::Bytes counted_workspace(um::Bytes workspace) {
  return um::round_up(workspace == um::Bytes{} ? um::Bytes{1} : workspace, kWorkspaceUnit);
}

/// What an engine with its settings is chosen by.
struct EngineCandidate {
  um::Bytes workspace;      ///< a counted one
  std::int64_t engine = 0;  ///< the same for all settings of an engine
  /// Does without the tensor cores that others use: some tens of times as long, for measuring, too.
  bool is_slow = false;
};

/// Which of cuDNN's engines are worth a measurement, of `candidates` in the order in which they are
/// expected to be fast. That is not the measured order, so there are many: the one with the least
/// workspace, those than which no faster one takes less, and the four fastest, eight together at
/// most; then engines that are not among them, each with its fastest settings, up to twelve; then
/// further settings, up to ten; at last, up to ten, slow ones. The result is in the order of
/// workspaces, of equal ones in that of `candidates`. Nothing takes more than `max`.
[[nodiscard]] std::vector<std::size_t> choose_engines(std::span<const EngineCandidate> candidates,
                                                      um::Bytes max);

}  // namespace spillway::cuda
