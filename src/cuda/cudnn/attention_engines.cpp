#include "src/cuda/cudnn/attention_engines.h"

#include <algorithm>
#include <utility>

#include "um/error.h"

namespace spillway::cuda {
namespace {

constexpr um::Bytes kScratchUnit{256};
// Each engine must be compiled, and measured in its own step.
constexpr std::size_t kMostOffered = 3;
// Masks of older versions do not support minus infinity.
constexpr std::size_t kOldestVersion = 91000;

}  // namespace

um::Bytes attention_scratch(const AttentionProblem& problem) {
  if (problem.pass == AttentionPass::kForward) return {};
  const AttentionGeometry geometry{.x = problem.x, .heads = problem.heads};
  return um::round_up(float_bytes(geometry.saved_count()), kScratchUnit);
}

AttentionEngine::AttentionEngine(EngineConfig config, um::Bytes scratch)
    : ListedEngine{std::move(config)},
      workspace_{scratch + um::round_up(this->config().workspace, kScratchUnit)} {}

ListedAttention list_attention(const CudnnTarget& target, const AttentionProblem& problem,
                               um::Bytes max_workspace) {
  ListedAttention listed;
  if (cudnnGetVersion() < kOldestVersion) {
    listed.refusal = "attention takes cuDNN 9.10 or newer";
    return listed;
  }
  try {
    listed.graph = std::make_unique<CudnnGraph>(attention_graph(target, problem));
    for (EngineConfig& config : engine_configs(target, *listed.graph)) {
      if (!config.is_deterministic || config.loses_precision) continue;
      AttentionEngine engine{std::move(config), attention_scratch(problem)};
      if (engine.workspace() <= max_workspace) listed.engines.push_back(std::move(engine));
    }
    if (listed.engines.empty()) {
      listed.refusal = "cuDNN lists no engine for " + describe(problem) + " within " +
                       to_string(max_workspace) + "; without a driver it lists none";
    }
  } catch (const CudnnError& error) {
    listed.engines.clear();
    listed.refusal = "cuDNN cannot run " + describe(problem) + ": " + error.what();
  }
  return listed;
}

AttentionEngines::AttentionEngines(CudnnTarget target, um::Bytes max_workspace)
    : target_{std::move(target)}, max_workspace_{max_workspace} {}

const std::vector<AttentionEngine>& AttentionEngines::offered(const AttentionProblem& problem) {
  return ready(problem).engines;
}

const std::string& AttentionEngines::refusal(const AttentionProblem& problem) {
  return ready(problem).refusal;
}

const ListedAttention& AttentionEngines::ready(const AttentionProblem& problem) {
  for (const auto& offer : offers_) {
    if (offer->problem == problem) return offer->listed;
  }
  auto offer = std::make_unique<Offer>(
      Offer{.problem = problem, .listed = list_attention(target_, problem, max_workspace_)});
  std::vector<AttentionEngine> ready;
  for (AttentionEngine& engine : offer->listed.engines) {
    if (ready.size() == kMostOffered) break;
    if (engine.make_ready(target_)) ready.push_back(std::move(engine));
  }
  if (ready.empty() && !offer->listed.engines.empty()) {
    offer->listed.refusal = "cuDNN can compile none of its engines for " + describe(problem);
  }
  offer->listed.engines = std::move(ready);
  return offers_.emplace_back(std::move(offer))->listed;
}

const AttentionEngine& AttentionEngines::named(const AttentionProblem& problem,
                                               std::string_view name) {
  const std::vector<AttentionEngine>& engines = offered(problem);
  const auto found = std::ranges::find(engines, name, &AttentionEngine::name);
  um::expects(found != engines.end(), "the algorithm is one of algorithms(operation)");
  return *found;
}

}  // namespace spillway::cuda
