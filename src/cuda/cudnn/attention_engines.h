#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "src/cuda/cudnn/attention_graph.h"
#include "src/cuda/cudnn/cudnn_engine.h"
#include "um/bytes.h"

namespace spillway::cuda {

/// Bytes at the start of the workspace that the graph keeps a tensor in: kTensorMeans, of the way
/// back. A multiple of 256.
[[nodiscard]] um::Bytes attention_scratch(const AttentionProblem& problem);

/// One of cuDNN's ways to run an attention.
class AttentionEngine : public ListedEngine {
 public:
  /// `scratch`: what its kernel needs besides the engine's workspace.
  AttentionEngine(EngineConfig config, um::Bytes scratch);

  /// "engine6_k24=26"
  [[nodiscard]] const std::string& name() const { return config().name; }
  /// With the scratch; a multiple of 256.
  [[nodiscard]] um::Bytes workspace() const { return workspace_; }

 private:
  um::Bytes workspace_;
};

/// What cuDNN lists for a pass, before anything is compiled.
struct ListedAttention {
  std::unique_ptr<CudnnGraph> graph;  ///< outlives the engines
  /// Those that give the same bits each time and keep float's precision within `max_workspace`, in
  /// the order in which cuDNN expects them to be fast.
  std::vector<AttentionEngine> engines;
  std::string refusal;  ///< why there are none
};

/// Where cuDNN refuses it lists none. All engines are compiled at run time, and are listed where
/// there is a driver alone.
[[nodiscard]] ListedAttention list_attention(const CudnnTarget& target,
                                             const AttentionProblem& problem,
                                             um::Bytes max_workspace);

/// What cuDNN offers for each attention, asked once and kept: of what it lists the first three that
/// it can compile.
///
/// Thread safety: none.
class AttentionEngines {
 public:
  /// Requires: what `target` stands for outlives this.
  AttentionEngines(CudnnTarget target, um::Bytes max_workspace);

  /// May be none: kernels of ours can do it all. They live as long as this.
  [[nodiscard]] const std::vector<AttentionEngine>& offered(const AttentionProblem& problem);

  /// Why offered(problem) are none; empty where there are some.
  [[nodiscard]] const std::string& refusal(const AttentionProblem& problem);

  /// The one of offered(problem) with that name. Requires: there is one.
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

}  // namespace spillway::cuda
