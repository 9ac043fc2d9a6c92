#include "nets/residual_norms.h"

#include <algorithm>
#include <cstddef>
#include <variant>

namespace spillway::nets {
namespace {

std::size_t index_of(NodeId node) { return static_cast<std::size_t>(node); }

// By node: layers on the longest way from the image.
std::vector<std::size_t> depths_of(const Network& network) {
  std::vector<std::size_t> depths;
  for (const Node& node : network.nodes) {
    std::size_t depth = 0;
    for (const NodeId input : node.inputs) depth = std::max(depth, depths[index_of(input)] + 1);
    depths.push_back(depth);
  }
  return depths;
}

std::size_t count_readers_of(const Network& network, NodeId node) {
  std::size_t count = 0;
  for (const Node& reader : network.nodes) {
    count += static_cast<std::size_t>(std::ranges::count(reader.inputs, node));
  }
  return count;
}

}  // namespace

std::vector<std::string> residual_norms(const Network& network) {
  const std::vector<std::size_t> depths = depths_of(network);
  std::vector<std::string> names;
  for (const Node& node : network.nodes) {
    if (!std::holds_alternative<Add>(node.layer)) continue;
    const NodeId deepest = *std::ranges::max_element(
        node.inputs, {}, [&](NodeId input) { return depths[index_of(input)]; });
    const Node& last = network[deepest];
    if (!std::holds_alternative<BatchNorm>(last.layer)) continue;
    if (count_readers_of(network, deepest) == 1) names.push_back(last.name);
  }
  return names;
}

}  // namespace spillway::nets
