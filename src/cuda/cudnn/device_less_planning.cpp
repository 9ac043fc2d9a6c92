#include "src/cuda/cudnn/device_less_planning.h"

#include <algorithm>
#include <array>
#include <utility>
#include <variant>

#include "src/cuda/cudnn/attention_engines.h"
#include "src/ops/weighted_operations.h"

namespace spillway::cuda {
namespace {

using nets::Network;
using nets::NodeId;

// Returns true if a ReLU reads the node, so that the step fuses it into the convolution.
bool is_rectified(const Network& network, std::size_t node) {
  return std::any_of(network.nodes.begin(), network.nodes.end(), [&](const nets::Node& reader) {
    return std::holds_alternative<nets::Relu>(reader.layer) && !reader.inputs.empty() &&
           reader.inputs.front() == static_cast<NodeId>(node);
  });
}

std::vector<ConvolutionProblem> problems_of(const Network& network, std::size_t node,
                                            std::size_t batch) {
  const nets::Node& place = network.nodes[node];
  const auto& layer = std::get<nets::Convolution>(place.layer);
  const NodeId input = place.inputs.front();
  const ConvolutionGeometry geometry =
      geometry_of(layer, {.batch = batch, .image = network[input].output},
                  {.batch = batch, .image = place.output});
  std::vector<ConvolutionProblem> problems{
      problem_of(ConvolutionForward{.geometry = geometry, .relu = is_rectified(network, node)})};
  // Nothing reads the gradient of the images.
  if (input != NodeId{0}) problems.push_back(problem_of(ConvolutionBackwardData{geometry}));
  problems.push_back(problem_of(ConvolutionBackwardWeights{geometry}));
  return problems;
}

std::string_view name_of(ConvolutionPass pass) {
  constexpr std::array<std::string_view, 3> kNames{"forward", "backward_data", "backward_weights"};
  return kNames.at(static_cast<std::size_t>(pass));
}

AttentionGeometry attention_geometry(const Network& network, const nets::Node& node,
                                     std::size_t batch) {
  const auto& layer = std::get<nets::Attention>(node.layer);
  return {.x = {.batch = batch, .image = network[node.inputs.front()].output},
          .heads = {.heads = layer.heads, .kv_heads = nets::key_heads(layer)},
          .is_causal = layer.causal};
}

std::string listed(const std::vector<AlgorithmInfo>& algorithms) {
  std::string line;
  for (const AlgorithmInfo& algorithm : algorithms) {
    line += " " + algorithm.name + ":" + std::to_string(algorithm.workspace.count());
  }
  return line;
}

}  // namespace

std::vector<PlannedConvolution> plan_convolutions(std::string_view properties,
                                                  const EngineRules& rules, const Network& network,
                                                  std::size_t batch) {
  ConvolutionEngines engines{CudnnTarget::described(properties), rules};
  std::vector<PlannedConvolution> all;
  for (std::size_t node = 1; node < network.nodes.size(); ++node) {
    if (!std::holds_alternative<nets::Convolution>(network.nodes[node].layer)) continue;
    for (const ConvolutionProblem& problem : problems_of(network, node, batch)) {
      const auto is_same = [&](const PlannedConvolution& p) { return p.problem == problem; };
      if (std::any_of(all.begin(), all.end(), is_same)) continue;
      PlannedConvolution planned{.layer = network.nodes[node].name, .problem = problem};
      for (const auto& engine : engines.offered(problem)) {
        planned.algorithms.push_back({.name = engine->name(), .workspace = engine->workspace()});
      }
      all.push_back(std::move(planned));
    }
  }
  return all;
}

std::string to_line(const PlannedConvolution& planned) {
  return planned.layer + " " + std::string{name_of(planned.problem.pass)} +
         listed(planned.algorithms);
}

std::vector<PlannedAttention> plan_attention(std::string_view properties, const EngineRules& rules,
                                             const Network& network, std::size_t batch) {
  AttentionEngines engines{CudnnTarget::described(properties), rules.max_workspace};
  const Machine machine{.precision = rules.precision, .attention = &engines};
  std::vector<PlannedAttention> all;
  const auto add = [&](const std::string& layer, const auto& op) {
    const AttentionProblem problem = problem_of(op);
    const auto is_same = [&](const PlannedAttention& p) { return p.problem == problem; };
    if (std::any_of(all.begin(), all.end(), is_same)) return;
    PlannedAttention planned{.layer = layer,
                             .problem = problem,
                             .algorithms = algorithms_of(machine, op),
                             .refusal = {}};
    if (!may_be_cudnns(rules.precision, op.geometry)) {
      planned.refusal = "cuDNN's takes bf16, no dropout, and heads of a multiple of 8 numbers";
    } else {
      planned.refusal = engines.refusal(problem);
    }
    all.push_back(std::move(planned));
  };
  for (const nets::Node& node : network.nodes) {
    if (!std::holds_alternative<nets::Attention>(node.layer)) continue;
    const AttentionGeometry geometry = attention_geometry(network, node, batch);
    add(node.name, AttentionForward{.geometry = geometry});
    add(node.name, AttentionBackward{.geometry = geometry});
  }
  return all;
}

std::string to_line(const PlannedAttention& planned) {
  const bool is_forward = planned.problem.pass == AttentionPass::kForward;
  return planned.layer + (is_forward ? " forward" : " backward") + listed(planned.algorithms) +
         (planned.refusal.empty() ? "" : " (" + planned.refusal + ")");
}

}  // namespace spillway::cuda
