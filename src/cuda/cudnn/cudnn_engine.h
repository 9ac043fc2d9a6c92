#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "src/cuda/cudnn/cudnn_graph.h"
#include "um/bytes.h"

namespace spillway::cuda {

/// One of cuDNN's engines with its settings: one way to run a graph.
struct EngineConfig {
  /// The engine's number and settings, the same for the same way in each process with the same
  /// version of cuDNN: "engine67_k2=5_k13=0".
  std::string name;
  std::int64_t engine;  ///< its number alone
  um::Bytes workspace;
  bool uses_tensor_cores;
  bool is_deterministic;
  /// Sums in fewer bits than float, or reads its inputs rounded to fewer than they have.
  bool loses_precision;
  /// Needs a driver to be listed at all and takes about half a second to build.
  bool is_compiled_at_run_time;

  CudnnDescriptor config;
};

/// What cuDNN offers for `graph`, in the order in which its heuristics (mode A, then the fallback)
/// expect it to be fast; each once. Throws: CudnnError. Requires: `graph` outlives the result.
[[nodiscard]] std::vector<EngineConfig> engine_configs(const CudnnTarget& target,
                                                       const CudnnGraph& graph);

/// Where a tensor of the graph lies in device memory.
struct TensorAddress {
  std::int64_t id;
  void* address;
};

/// An engine configuration made ready to run. Requires: what it was made of outlives it.
class EnginePlan {
 public:
  /// `config`: EngineConfig's. Throws: CudnnError when the target cannot run it.
  EnginePlan(const CudnnTarget& target, const CudnnDescriptor& config);

  [[nodiscard]] um::Bytes workspace() const;
  /// Enqueues the graph on the handle's stream. Throws: CudnnError.
  void execute(cudnnHandle_t handle, std::span<const TensorAddress> tensors, void* workspace) const;

 private:
  CudnnDescriptor plan_{CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR};
};

/// An engine that is listed: it may be that the target cannot run it, which its plan shows.
class ListedEngine {
 public:
  explicit ListedEngine(EngineConfig config);

  [[nodiscard]] const EngineConfig& config() const { return config_; }

  /// Whether the target can run it: the heuristics do not promise that. Makes the plan, once; to
  /// compile an engine takes up to half a second.
  [[nodiscard]] bool make_ready(const CudnnTarget& target);
  /// Requires: make_ready() returned true.
  [[nodiscard]] const EnginePlan& plan() const { return *plan_; }

 private:
  EngineConfig config_;
  std::optional<EnginePlan> plan_;
};

}  // namespace spillway::cuda
