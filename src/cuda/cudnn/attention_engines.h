#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "src/cuda/cudnn/attention_graph.h"
#include "src/cuda/cudnn/cudnn_engine.h"
#include "src/cuda/layout/layout.h"
#include "src/ops/backend.h"
#include "um/bytes.h"

namespace spillway::cuda {

/// Returns the bytes for kTensorMeans of backward, a tensor at the start of the workspace. A
/// multiple of 256.
[[nodiscard]] um::Bytes attention_scratch(const AttentionProblem& problem);

/// One of cuDNN's engines for attention.
class AttentionEngine : public ListedEngine {
 public:
  /// `scratch` is workspace of its kernel beyond the engine's own.
  AttentionEngine(EngineConfig config, um::Bytes scratch);

  /// Returns a name such as "engine6_k24=26".
  [[nodiscard]] const std::string& name() const { return config().name; }
  /// Returns the workspace with scratch; a multiple of 256 bytes.
  [[nodiscard]] um::Bytes workspace() const { return workspace_; }

 private:
  um::Bytes workspace_;
};

/// The engines that cuDNN lists for a pass, before any is compiled.
struct ListedAttention {
  std::unique_ptr<CudnnGraph> graph;  ///< outlives the engines
  /// Deterministic engines with float precision and at most `max_workspace`, in the order of speed
  /// that cuDNN expects.
  std::vector<AttentionEngine> engines;
  std::string refusal;  ///< why there are no engines
};

/// Lists the engines for `problem`, or none if cuDNN refuses. They are all compiled at run time,
/// and cuDNN lists them only if a driver is present.
[[nodiscard]] ListedAttention list_attention(const CudnnTarget& target,
                                             const AttentionProblem& problem,
                                             um::Bytes max_workspace);

/// Engines that cuDNN offers for attention, listed once per problem. The first three that cuDNN can
/// compile are kept.
///
/// Thread safety: none.
class AttentionEngines {
 public:
  /// Requires: the handle or description of `target` outlives this object.
  AttentionEngines(CudnnTarget target, um::Bytes max_workspace);

  /// Returns the engines, possibly none, since our kernels support everything. They live as long as
  /// this object.
  [[nodiscard]] const std::vector<AttentionEngine>& offered(const AttentionProblem& problem);

  /// Returns why offered(problem) is empty; empty if it is not.
  [[nodiscard]] const std::string& refusal(const AttentionProblem& problem);

  /// Returns the engine of offered(problem) with that name. Requires: it exists.
  [[nodiscard]] const AttentionEngine& named(const AttentionProblem& problem,
                                             std::string_view name);

 private:
  struct Offer {
    AttentionProblem problem;
    ListedAttention listed;
  };

  [[nodiscard]] const ListedAttention& ready(const AttentionProblem& problem);

  CudnnTarget target_;
  um::Bytes max_workspace_;
  std::vector<std::unique_ptr<Offer>> offers_;
};

/// Return the algorithms of an attention: our kernel, then cuDNN's engines. All save the same
/// numbers for backward, so the two passes may use different algorithms.
[[nodiscard]] std::vector<AlgorithmInfo> algorithms_of(const Machine& machine,
                                                       const AttentionForward& op);
[[nodiscard]] std::vector<AlgorithmInfo> algorithms_of(const Machine& machine,
                                                       const AttentionBackward& op);

}  // namespace spillway::cuda
