#include "nets/network.h"

#include "nets/saturated.h"

namespace spillway::nets {
namespace {

// Trainable numbers of one layer that reads `x`.
struct Count {
  Shape x;

  std::size_t operator()(const Convolution& layer) const {
    const std::size_t weights =
        saturated_product({x.channels / layer.groups, layer.kernel.height, layer.kernel.width});
    return with_bias(layer.channels, weights, layer.bias);
  }
  std::size_t operator()(const TransposedConvolution& layer) const {
    const std::size_t weights = saturated_product(
        {x.channels, layer.channels / layer.groups, layer.kernel.height, layer.kernel.width});
    return saturated_sum({weights, layer.bias ? layer.channels : 0});
  }
  std::size_t operator()(const BatchNorm& /*layer*/) const { return 2 * x.channels; }
  std::size_t operator()(const Linear& layer) const {
    return with_bias(layer.features, x.elements(), layer.bias);
  }
  template <typename Other>
  std::size_t operator()(const Other& /*layer*/) const {
    return 0;
  }

  // `outputs` numbers, each made with so many weights.
  static std::size_t with_bias(std::size_t outputs, std::size_t weights, bool bias) {
    return saturated_product({outputs, saturated_sum({weights, bias ? 1U : 0U})});
  }
};

}  // namespace

std::size_t count_parameters(const Network& network) {
  std::size_t count = 0;
  for (const Node& node : network.nodes) {
    if (node.inputs.empty()) continue;  // the image
    count = saturated_sum({count, std::visit(Count{network[node.inputs[0]].output}, node.layer)});
  }
  return count;
}

Network without_auxiliary_heads(const Network& network) {
  std::vector<bool> is_needed(network.nodes.size(), false);
  is_needed.front() = true;  // the image, whatever reads it
  is_needed.back() = true;
  for (std::size_t i = network.nodes.size(); i-- > 0;) {
    for (const NodeId input : network.nodes[i].inputs) {
      if (is_needed[i]) is_needed[static_cast<std::size_t>(input)] = true;
    }
  }
  Network rest{.name = network.name, .nodes = {}};
  std::vector<NodeId> renamed(network.nodes.size());
  for (std::size_t i = 0; i < network.nodes.size(); ++i) {
    if (!is_needed[i]) continue;
    renamed[i] = NodeId{static_cast<std::uint32_t>(rest.nodes.size())};
    Node& node = rest.nodes.emplace_back(network.nodes[i]);
    for (NodeId& input : node.inputs) input = renamed[static_cast<std::size_t>(input)];
  }
  return rest;
}

}  // namespace spillway::nets
