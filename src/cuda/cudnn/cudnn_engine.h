#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "src/cuda/cudnn/cudnn_graph.h"
#include "um/bytes.h"

namespace spillway::cuda {

/// A cuDNN engine with its settings, which can run a graph.
struct EngineConfig {
  /// Engine number and settings: "engine67_k2=5_k13=0". The name is the same in every process with
  /// the same version of cuDNN.
  std::string name;
  std::int64_t engine;  ///< the engine number alone
  um::Bytes workspace;
  bool uses_tensor_cores;
  bool is_deterministic;
  /// Sums in less than float precision, or rounds its inputs.
  bool loses_precision;
  /// Splits a sum and, without a workspace for its parts, adds them up in the output: in bfloat16
  /// each is rounded. cuDNN has no note for it; on an H200 such sums were off by 4 roundings.
  bool adds_up_in_output;
  /// Is listed only if a driver is present, and takes about half a second to build.
  bool is_compiled_at_run_time;

  CudnnDescriptor config;
};

/// Returns each engine that cuDNN offers for `graph` once, ordered by the speed that its heuristics
/// (mode A, then the fallback) expect. Throws: CudnnError. Requires: `graph` outlives the result.
[[nodiscard]] std::vector<EngineConfig> engine_configs(const CudnnTarget& target,
                                                       const CudnnGraph& graph);

/// The device address of a tensor of the graph.
struct TensorAddress {
  std::int64_t id;
  void* address;
};

/// An engine configuration prepared to run. Requires: the configuration and its graph outlive it.
class EnginePlan {
 public:
  /// `config` is EngineConfig::config. Throws: CudnnError if the target cannot run it.
  EnginePlan(const CudnnTarget& target, const CudnnDescriptor& config);

  [[nodiscard]] um::Bytes workspace() const;
  /// Enqueues the graph on the handle's stream. Throws: CudnnError.
  void execute(cudnnHandle_t handle, std::span<const TensorAddress> tensors, void* workspace) const;

 private:
  CudnnDescriptor plan_{CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR};
};

/// An engine that cuDNN lists; only building its plan shows whether the target can run it.
class ListedEngine {
 public:
  explicit ListedEngine(EngineConfig config);

  [[nodiscard]] const EngineConfig& config() const { return config_; }

  /// Returns true if the target can run the engine, which the heuristics do not guarantee. The
  /// first call builds the plan; compiling an engine takes up to half a second.
  [[nodiscard]] bool make_ready(const CudnnTarget& target);
  /// Requires: make_ready() returned true.
  [[nodiscard]] const EnginePlan& plan() const { return *plan_; }

 private:
  EngineConfig config_;
  std::optional<EnginePlan> plan_;
};

}  // namespace spillway::cuda
