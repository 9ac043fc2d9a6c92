#include "nets/network.h"

#include <set>
#include <variant>

#include "nets/shape.h"
#include "um/error.h"

namespace spillway::nets {
namespace {

// Counts the trainable weights of a layer that reads `x`.
struct Count {
  Shape x;
  bool has_table;  // uses another layer's table

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
    const bool is_sequence = x.form == Form::kSequence;
    return with_bias(layer.features, is_sequence ? x.channels : x.elements(), layer.bias);
  }
  std::size_t operator()(const Embedding& layer) const {
    return saturated_product({layer.vocabulary, layer.features});
  }
  std::size_t operator()(const PositionEmbedding& layer) const {
    return saturated_product({saturated_sum({layer.rows(x), layer.segments}), x.channels});
  }
  std::size_t operator()(const LayerNorm& /*layer*/) const { return 2 * x.channels; }
  std::size_t operator()(const RmsNorm& /*layer*/) const { return x.channels; }
  std::size_t operator()(const ImageTokens& layer) const {
    return layer.class_token ? x.channels : 0;
  }
  std::size_t operator()(const VocabularyLoss& layer) const {
    return with_bias(layer.vocabulary, has_table ? 0 : x.channels, layer.bias);
  }
  template <typename Other>
  std::size_t operator()(const Other& /*layer*/) const {
    return 0;
  }

  // Counts `outputs` elements of `weights` weights each, plus biases.
  static std::size_t with_bias(std::size_t outputs, std::size_t weights, bool bias) {
    return saturated_product({outputs, saturated_sum({weights, bias ? 1U : 0U})});
  }
};

}  // namespace

std::size_t count_parameters(const Network& network, const Node& node) {
  if (node.inputs.empty()) return 0;  // the image
  const Count own{.x = network[node.inputs[0]].output, .has_table = table_of(node).has_value()};
  return std::visit(own, node.layer);
}

std::size_t count_parameters(const Network& network) {
  std::size_t count = 0;
  for (const Node& node : network.nodes) {
    count = saturated_sum({count, count_parameters(network, node)});
  }
  return count;
}

bool is_loss(const Layer& layer) {
  return std::holds_alternative<SoftmaxCrossEntropy>(layer) ||
         std::holds_alternative<VocabularyLoss>(layer);
}

std::optional<NodeId> table_of(const Node& node) {
  if (node.inputs.size() < 2 || !std::holds_alternative<VocabularyLoss>(node.layer)) return {};
  return node.inputs[1];
}

std::span<const NodeId> read_by(const Node& node) {
  const bool reads_one = std::holds_alternative<Crop>(node.layer) || table_of(node);
  return std::span{node.inputs}.first(reads_one ? 1 : node.inputs.size());
}

void set_dropout(Network& network, float probability) {
  um::expects(probability >= 0 && probability < 1, "a probability of less than 1");
  for (Node& node : network.nodes) {
    if (auto* const dropout = std::get_if<Dropout>(&node.layer)) dropout->probability = probability;
    if (auto* const attention = std::get_if<Attention>(&node.layer)) {
      attention->dropout = probability;
    }
  }
}

std::optional<float> dropout_of(const Network& network) {
  std::set<float> all;
  for (const Node& node : network.nodes) {
    if (const auto* const dropout = std::get_if<Dropout>(&node.layer)) {
      all.insert(dropout->probability);
    }
    if (const auto* const attention = std::get_if<Attention>(&node.layer)) {
      all.insert(attention->dropout);
    }
  }
  return all.size() == 1 ? std::optional{*all.begin()} : std::nullopt;
}

Network without_auxiliary_heads(const Network& network) {
  std::vector<bool> is_needed(network.nodes.size(), false);
  is_needed.front() = true;  // the image, even if no layer reads it
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
