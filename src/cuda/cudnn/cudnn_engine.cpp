#include "src/cuda/cudnn/cudnn_engine.h"

#include <algorithm>
#include <set>
#include <utility>

namespace spillway::cuda {
namespace {

// Upper limit; cuDNN 9.19 lists about 40 for a convolution.
constexpr std::size_t kMaxConfigs = 256;
// Upper limit of settings per engine; 44 types exist.
constexpr std::size_t kMaxKnobs = 64;
// Room for counters of the parts of sums that have been added up.
constexpr um::Bytes kCountersAlone{4096};
constexpr int kSplitK = 0;  // CUDNN_KNOB_TYPE_SPLIT_K: its name is deprecated

template <class T>
bool contains(const std::vector<T>& all, T wanted) {
  return std::find(all.begin(), all.end(), wanted) != all.end();
}

struct Knob {
  cudnnBackendKnobType_t type;
  std::int64_t value;
};

std::vector<Knob> knobs_of(const CudnnDescriptor& config) {
  std::vector<Knob> knobs;
  for (const CudnnDescriptor& knob : config.get_descriptors(
           CUDNN_ATTR_ENGINECFG_KNOB_CHOICES, CUDNN_BACKEND_KNOB_CHOICE_DESCRIPTOR, kMaxKnobs)) {
    knobs.push_back({.type = knob.get<cudnnBackendKnobType_t>(CUDNN_ATTR_KNOB_CHOICE_KNOB_TYPE),
                     .value = knob.get<std::int64_t>(CUDNN_ATTR_KNOB_CHOICE_KNOB_VALUE)});
  }
  return knobs;
}

std::string name_of(std::int64_t engine, const std::vector<Knob>& knobs) {
  std::string name = "engine" + std::to_string(engine);
  for (const Knob& knob : knobs) {
    name += "_k" + std::to_string(static_cast<int>(knob.type)) + "=" + std::to_string(knob.value);
  }
  return name;
}

// cuDNN 9.1 knows the workspace of plans only. make_ready() later refuses engines without a plan.
um::Bytes workspace_of([[maybe_unused]] const CudnnTarget& target, const CudnnDescriptor& config) {
#if CUDNN_VERSION >= 90200
  const auto bytes = config.get<std::int64_t>(CUDNN_ATTR_ENGINECFG_WORKSPACE_SIZE);
  return um::Bytes{static_cast<std::uint64_t>(std::max<std::int64_t>(bytes, 0))};
#else
  try {
    return EnginePlan{target, config}.workspace();
  } catch (const CudnnError&) {
    return {};
  }
#endif
}

bool is_split(const Knob& knob) { return static_cast<int>(knob.type) == kSplitK && knob.value > 1; }

// Returns whether a kernel that splits its sums has no room for the parts. Then its workspace is
// that of the same kernel without a split, and some counters.
bool has_no_room_for_parts(const CudnnTarget& target, const CudnnDescriptor& engine,
                           std::vector<Knob> knobs, um::Bytes workspace) {
  const auto split = std::ranges::find_if(knobs, is_split);
  if (split == knobs.end()) return false;
  split->value = 1;
  std::vector<CudnnDescriptor> choices;
  for (const Knob& knob : knobs) {
    CudnnDescriptor& choice = choices.emplace_back(CUDNN_BACKEND_KNOB_CHOICE_DESCRIPTOR);
    choice.set(CUDNN_ATTR_KNOB_CHOICE_KNOB_TYPE, knob.type);
    choice.set(CUDNN_ATTR_KNOB_CHOICE_KNOB_VALUE, knob.value);
    choice.finalize();
  }
  CudnnDescriptor whole{CUDNN_BACKEND_ENGINECFG_DESCRIPTOR};
  whole.set(CUDNN_ATTR_ENGINECFG_ENGINE, engine);
  whole.set_all(CUDNN_ATTR_ENGINECFG_KNOB_CHOICES, std::span<const CudnnDescriptor>{choices});
  try {
    whole.finalize();
  } catch (const CudnnError&) {  // it always splits
    return workspace < kCountersAlone;
  }
  return workspace < workspace_of(target, whole) + kCountersAlone;
}

EngineConfig describe(const CudnnTarget& target, CudnnDescriptor config) {
  const CudnnDescriptor engine =
      config.get_descriptor(CUDNN_ATTR_ENGINECFG_ENGINE, CUDNN_BACKEND_ENGINE_DESCRIPTOR);
  const auto number = engine.get<std::int64_t>(CUDNN_ATTR_ENGINE_GLOBAL_INDEX);
  const auto numerics =
      engine.get_all<cudnnBackendNumericalNote_t>(CUDNN_ATTR_ENGINE_NUMERICAL_NOTE);
  const auto behaviour =
      engine.get_all<cudnnBackendBehaviorNote_t>(CUDNN_ATTR_ENGINE_BEHAVIOR_NOTE);
  const std::vector<Knob> knobs = knobs_of(config);
  const um::Bytes workspace = workspace_of(target, config);
  return {.name = name_of(number, knobs),
          .engine = number,
          .workspace = workspace,
          .uses_tensor_cores = contains(numerics, CUDNN_NUMERICAL_NOTE_TENSOR_CORE),
          .is_deterministic = !contains(numerics, CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC),
          .loses_precision = contains(numerics, CUDNN_NUMERICAL_NOTE_DOWN_CONVERT_INPUTS) ||
                             contains(numerics, CUDNN_NUMERICAL_NOTE_REDUCED_PRECISION_REDUCTION),
          .adds_up_in_output = has_no_room_for_parts(target, engine, knobs, workspace),
          .is_compiled_at_run_time = contains(behaviour, CUDNN_BEHAVIOR_NOTE_RUNTIME_COMPILATION),
          .config = std::move(config)};
}

std::vector<CudnnDescriptor> ask([[maybe_unused]] const CudnnTarget& target,
                                 const CudnnGraph& graph, cudnnBackendHeurMode_t mode) {
  CudnnDescriptor heuristics{CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR};
  heuristics.set(CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, graph.descriptor());
  heuristics.set(CUDNN_ATTR_ENGINEHEUR_MODE, mode);
#if CUDNN_VERSION >= 90800
  if (target.properties()) {
    heuristics.set(CUDNN_ATTR_ENGINEHEUR_DEVICEPROP, *target.properties());
  }
#endif
  try {
    heuristics.finalize();
  } catch (const CudnnError& error) {  // some releases report an empty list this way
    if (error.is_unsupported()) return {};
    throw;
  }
  return heuristics.get_descriptors(CUDNN_ATTR_ENGINEHEUR_RESULTS,
                                    CUDNN_BACKEND_ENGINECFG_DESCRIPTOR, kMaxConfigs);
}

}  // namespace

std::vector<EngineConfig> engine_configs(const CudnnTarget& target, const CudnnGraph& graph) {
  std::vector<EngineConfig> all;
  std::set<std::string> names;
  for (const cudnnBackendHeurMode_t mode : {CUDNN_HEUR_MODE_A, CUDNN_HEUR_MODE_FALLBACK}) {
    for (CudnnDescriptor& config : ask(target, graph, mode)) {
      EngineConfig engine = describe(target, std::move(config));
      if (names.insert(engine.name).second) all.push_back(std::move(engine));
    }
  }
  return all;
}

EnginePlan::EnginePlan(const CudnnTarget& target, const CudnnDescriptor& config) {
  plan_.set(CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, config);
#if CUDNN_VERSION >= 90800
  if (target.properties()) plan_.set(CUDNN_ATTR_EXECUTION_PLAN_DEVICEPROP, *target.properties());
#endif
  if (target.handle() != nullptr) plan_.set(CUDNN_ATTR_EXECUTION_PLAN_HANDLE, target.handle());
  plan_.finalize();
}

um::Bytes EnginePlan::workspace() const {
  const auto bytes = plan_.get<std::int64_t>(CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE);
  return um::Bytes{static_cast<std::uint64_t>(std::max<std::int64_t>(bytes, 0))};
}

void EnginePlan::execute(cudnnHandle_t handle, std::span<const TensorAddress> tensors,
                         void* workspace) const {
  std::vector<std::int64_t> ids;
  std::vector<void*> addresses;
  for (const TensorAddress& tensor : tensors) {
    ids.push_back(tensor.id);
    addresses.push_back(tensor.address);
  }
  CudnnDescriptor pack{CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR};
  pack.set_all<std::int64_t>(CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, ids);
  pack.set_all<void*>(CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, addresses);
  pack.set(CUDNN_ATTR_VARIANT_PACK_WORKSPACE, workspace);
  pack.finalize();
  check_cudnn(cudnnBackendExecute(handle, plan_.get(), pack.get()));
}

ListedEngine::ListedEngine(EngineConfig config) : config_{std::move(config)} {}

bool ListedEngine::make_ready(const CudnnTarget& target) {
  if (plan_) return true;
  try {
    plan_.emplace(target, config_.config);
  } catch (const CudnnError&) {
    return false;
  }
  // The kernel's workspace has the size that the configuration stated.
  return plan_->workspace() <= config_.workspace;
}

}  // namespace spillway::cuda
