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

/// Rules for which cuDNN engines may be used.
struct EngineRules {
  Precision precision = Precision::kFp32;
  bool deterministic = false;  ///< use only engines that give the same bits in each run
  um::Bytes max_workspace;
};

/// Returns true if an engine may be used. Engines compiled at run time are excluded: building one
/// takes half a second, and a network has hundreds of convolutions. Excluded, too, are engines that
/// sum in less than float and, for Precision::kFp32, engines with tensor cores, which would
/// multiply as TF32.
[[nodiscard]] bool is_permitted(const EngineConfig& engine, const EngineRules& rules);

/// An engine that can run a convolution.
class ConvolutionEngine : public ListedEngine {
 public:
  /// `scratch` is workspace of its kernel beyond the engine's own.
  ConvolutionEngine(EngineConfig config, bool is_fused, um::Bytes scratch);

  /// Returns a name such as "engine67_k2=5_k13=0" or "fused_engine51_...".
  [[nodiscard]] const std::string& name() const { return name_; }
  /// Returns the engine's number, equal for all its settings; -1 - number if it is fused.
  [[nodiscard]] std::int64_t number() const {
    return is_fused_ ? -1 - config().engine : config().engine;
  }
  /// Returns the workspace with scratch, as rounded by counted_workspace().
  [[nodiscard]] um::Bytes workspace() const { return workspace_; }
  /// Returns true if the engine adds the bias and applies the ReLU; otherwise the caller must.
  [[nodiscard]] bool is_fused() const { return is_fused_; }
  [[nodiscard]] bool uses_tensor_cores() const { return config().uses_tensor_cores; }

 private:
  bool is_fused_;
  std::string name_;
  um::Bytes workspace_;
};

using OfferedEngines = std::vector<std::unique_ptr<ConvolutionEngine>>;

/// Engines that cuDNN offers for each convolution, listed once (in about 50 ms) and kept.
///
/// Thread safety: none.
class ConvolutionEngines {
 public:
  /// Requires: the handle or description of `target` outlives this object.
  ConvolutionEngines(CudnnTarget target, EngineRules rules);

  /// Returns at least one engine, smallest workspace first (choose_engines()). They live as long as
  /// this object. Throws: um::Error if the rules permit none of cuDNN's engines, or if padding
  /// channels would split its groups.
  [[nodiscard]] const OfferedEngines& offered(const ConvolutionProblem& problem);

  /// Returns the engine of offered(problem) with that name. Requires: it exists.
  [[nodiscard]] const ConvolutionEngine& named(const ConvolutionProblem& problem,
                                               std::string_view name);

 private:
  // Graphs must outlive the engines made for them.
  struct Offer {
    ConvolutionProblem problem;
    std::vector<std::unique_ptr<CudnnGraph>> graphs;
    OfferedEngines engines;
  };

  // Returns all permitted engines by expected speed, fused ones first.
  [[nodiscard]] Offer list(const ConvolutionProblem& problem) const;

  CudnnTarget target_;
  EngineRules rules_;
  std::vector<std::unique_ptr<Offer>> offers_;
};

/// Unit to which workspaces are rounded up, at least one. A small workspace such as 131 bytes then
/// does not count as larger than none, which may be ten times slower.
inline constexpr um::Bytes kWorkspaceUnit{1U << 20U};

/// Returns the workspace rounded up to that unit.
[[nodiscard]] constexpr um::Bytes counted_workspace(um::Bytes workspace) {
  return um::round_up(workspace == um::Bytes{} ? um::Bytes{1} : workspace, kWorkspaceUnit);
}

/// Properties of an engine and its settings that decide whether it is chosen.
struct EngineCandidate {
  um::Bytes workspace;      ///< rounded by counted_workspace()
  std::int64_t engine = 0;  ///< number of the engine, equal for all its settings
  /// Does not use tensor cores although others do: tens of times slower, also to measure.
  bool is_slow = false;
};

/// Chooses the engines that are worth a measurement. `candidates` are in the order of expected
/// speed. Measured speeds differ, and therefore many engines are chosen:
/// - the smallest workspace, the Pareto front, and the four fastest: at most eight together;
/// - then further engines, each with its fastest settings, up to twelve in total;
/// - then further settings, up to ten; finally slow candidates, up to ten.
/// The result is ordered by workspace, then by the order of `candidates`. No choice exceeds `max`.
[[nodiscard]] std::vector<std::size_t> choose_engines(std::span<const EngineCandidate> candidates,
                                                      um::Bytes max);

}  // namespace spillway::cuda
