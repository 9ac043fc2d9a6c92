#include "src/cuda/cudnn/convolution_engines.h"

#include <algorithm>
#include <utility>

#include "src/cuda/cudnn/convolution.h"
#include "src/cuda/layout/layout.h"
#include "um/error.h"

namespace spillway::cuda {
namespace {

constexpr std::size_t kFastest = 4;
constexpr std::size_t kFrontAndFastest = 8;
constexpr std::size_t kEngines = 12;
constexpr std::size_t kSettings = 10;

using Choice = std::vector<std::size_t>;

// Returns the Pareto front (candidates without a faster one of at most their workspace), and the
// fastest.
Choice front_and_fastest(std::span<const EngineCandidate> candidates, um::Bytes max) {
  Choice fastest;
  Choice front;  // in order of decreasing workspace
  for (std::size_t i = 0; i < candidates.size(); ++i) {
    const um::Bytes workspace = candidates[i].workspace;
    if (workspace > max) continue;
    if (front.empty() || workspace < candidates[front.back()].workspace) front.push_back(i);
    if (fastest.size() < kFastest) fastest.push_back(i);
  }
  Choice chosen{front.rbegin(), front.rend()};
  chosen.resize(std::min(chosen.size(), kFrontAndFastest - fastest.size()));
  for (const std::size_t i : fastest) {
    if (std::ranges::find(chosen, i) == chosen.end()) chosen.push_back(i);
  }
  return chosen;
}

// Adds further candidates that `is_wanted` accepts, in order, until there are `count`.
template <class IsWanted>
void fill(Choice& chosen, std::size_t candidates, std::size_t count, const IsWanted& is_wanted) {
  for (std::size_t i = 0; i < candidates && chosen.size() < count; ++i) {
    if (std::ranges::find(chosen, i) == chosen.end() && is_wanted(i)) chosen.push_back(i);
  }
}

// Returns the engines of `candidates` that are worth a measurement, after checking that they run.
OfferedEngines choose(const CudnnTarget& target, OfferedEngines candidates,
                      const EngineRules& rules) {
  for (;;) {
    std::vector<EngineCandidate> listed;
    listed.reserve(candidates.size());
    for (const auto& engine : candidates) {
      listed.push_back(
          {.workspace = engine->workspace(),
           .engine = engine->number(),
           .is_slow = rules.precision != Precision::kFp32 && !engine->uses_tensor_cores()});
    }
    const std::vector<std::size_t> chosen = choose_engines(listed, rules.max_workspace);
    const auto refused = std::find_if(chosen.begin(), chosen.end(), [&](std::size_t i) {
      return !candidates[i]->make_ready(target);
    });
    if (refused != chosen.end()) {
      candidates.erase(candidates.begin() + static_cast<std::ptrdiff_t>(*refused));
      continue;
    }
    OfferedEngines engines;
    for (const std::size_t i : chosen) engines.push_back(std::move(candidates[i]));
    return engines;
  }
}

}  // namespace

std::vector<std::size_t> choose_engines(std::span<const EngineCandidate> candidates,
                                        um::Bytes max) {
  Choice chosen = front_and_fastest(candidates, max);
  for (const bool slow : {false, true}) {
    const auto is_wanted = [&](std::size_t i) {
      return candidates[i].workspace <= max && candidates[i].is_slow == slow;
    };
    const auto is_another_engine = [&](std::size_t i) {
      return is_wanted(i) && std::ranges::none_of(chosen, [&](std::size_t c) {
               return candidates[c].engine == candidates[i].engine;
             });
    };
    fill(chosen, candidates.size(), slow ? kSettings : kEngines, is_another_engine);
    fill(chosen, candidates.size(), kSettings, is_wanted);
  }
  std::ranges::sort(chosen, [&](std::size_t a, std::size_t b) {
    const um::Bytes of_a = candidates[a].workspace;
    const um::Bytes of_b = candidates[b].workspace;
    return of_a != of_b ? of_a < of_b : a < b;
  });
  return chosen;
}

bool is_permitted(const EngineConfig& engine, const EngineRules& rules) {
  if (engine.is_compiled_at_run_time || engine.loses_precision) return false;
  if (rules.precision == Precision::kBf16 && engine.adds_up_in_output) return false;
  if (rules.deterministic && !engine.is_deterministic) return false;
  return rules.precision != Precision::kFp32 || !engine.uses_tensor_cores;
}

ConvolutionEngine::ConvolutionEngine(EngineConfig config, bool is_fused, um::Bytes scratch)
    : ListedEngine{std::move(config)},
      is_fused_{is_fused},
      name_{is_fused ? "fused_" + this->config().name : this->config().name},
      workspace_{counted_workspace(this->config().workspace + scratch)} {}

ConvolutionEngines::ConvolutionEngines(CudnnTarget target, EngineRules rules)
    : target_{std::move(target)}, rules_{rules} {}

const OfferedEngines& ConvolutionEngines::offered(const ConvolutionProblem& problem) {
  for (const auto& offer : offers_) {
    if (offer->problem == problem) return offer->engines;
  }
  if (!has_whole_groups(problem.geometry)) {
    throw um::Error{"on a GPU, " + describe(problem) + " in " +
                    std::to_string(problem.geometry.groups) +
                    " groups needs numbers of channels that are multiples of " +
                    std::to_string(Layout::kChannelBlock) + "; choose others, or train on the CPU"};
  }
  Offer offer = naming([&] { return describe(problem); }, [&] { return list(problem); });
  offer.engines = choose(target_, std::move(offer.engines), rules_);
  if (offer.engines.empty()) {
    throw um::Error{"cuDNN has no engine for " + describe(problem) + " that takes at most " +
                    to_string(rules_.max_workspace) +
                    " of workspace: allow more, or choose another precision"};
  }
  return offers_.emplace_back(std::make_unique<Offer>(std::move(offer)))->engines;
}

const ConvolutionEngine& ConvolutionEngines::named(const ConvolutionProblem& problem,
                                                   std::string_view name) {
  const OfferedEngines& engines = offered(problem);
  const auto found = std::find_if(engines.begin(), engines.end(),
                                  [&](const auto& engine) { return engine->name() == name; });
  um::expects(found != engines.end(), "the algorithm is one of algorithms(operation)");
  return **found;
}

ConvolutionEngines::Offer ConvolutionEngines::list(const ConvolutionProblem& problem) const {
  Offer offer{.problem = problem};
  const um::Bytes scratch = scratch_of(rules_.precision, problem).total();
  const auto add = [&](CudnnGraph graph, bool is_fused) {
    const CudnnGraph& kept =
        *offer.graphs.emplace_back(std::make_unique<CudnnGraph>(std::move(graph)));
    for (EngineConfig& config : engine_configs(target_, kept)) {
      if (!is_permitted(config, rules_)) continue;
      offer.engines.push_back(
          std::make_unique<ConvolutionEngine>(std::move(config), is_fused, scratch));
    }
  };
  if (problem.pass == ConvolutionPass::kForward && problem.geometry.bias) {
    add(fused_graph(target_, rules_.precision, problem), /*is_fused=*/true);
  }
  add(plain_graph(target_, rules_.precision, problem), /*is_fused=*/false);
  return offer;
}

}  // namespace spillway::cuda
