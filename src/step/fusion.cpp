#include "src/step/fusion.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <variant>

namespace spillway {
namespace {

bool takes_relu(const nets::Layer& layer) {
  return std::holds_alternative<nets::Convolution>(layer) ||
         std::holds_alternative<nets::TransposedConvolution>(layer) ||
         std::holds_alternative<nets::BatchNorm>(layer) ||
         std::holds_alternative<nets::Linear>(layer) || std::holds_alternative<nets::Add>(layer);
}

}  // namespace

std::vector<std::size_t> count_readers(const nets::Network& network) {
  std::vector<std::size_t> readers(network.nodes.size());
  for (const nets::Node& node : network.nodes) {
    for (const nets::NodeId input : nets::read_by(node)) ++readers[static_cast<std::size_t>(input)];
  }
  return readers;
}

std::vector<FusedLayer> fuse(const nets::Network& network) {
  const std::vector<std::size_t> readers = count_readers(network);
  std::vector<std::optional<nets::NodeId>> relu_of(network.nodes.size());
  std::vector<bool> is_absorbed(network.nodes.size(), false);
  for (std::size_t i = 1; i < network.nodes.size(); ++i) {
    const nets::Node& node = network.nodes[i];
    if (!std::holds_alternative<nets::Relu>(node.layer)) continue;
    const auto input = static_cast<std::size_t>(node.inputs[0]);
    if (input == 0 || readers[input] != 1 || !takes_relu(network.nodes[input].layer)) continue;
    relu_of[input] = nets::NodeId(i);
    is_absorbed[i] = true;
  }
  std::vector<FusedLayer> layers;
  for (std::size_t i = 1; i < network.nodes.size(); ++i) {
    if (is_absorbed[i]) continue;
    const nets::NodeId node{static_cast<std::uint32_t>(i)};
    layers.push_back(
        {.node = node, .output = relu_of[i].value_or(node), .relu = relu_of[i].has_value()});
  }
  return layers;
}

}  // namespace spillway
