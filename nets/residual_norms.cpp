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

// By node: how often layers read it.
std::vector<std::size_t> readers_of(const Network& network) {
  std::vector<std::size_t> readers(network.nodes.size());
  for (const Node& node : network.nodes) {
    for (const NodeId input : node.inputs) ++readers[index_of(input)];
  }
  return readers;
}

}  // namespace

std::vector<std::string> residual_norms(const Network& network) {
  const std::vector<std::size_t> depths = depths_of(network);
  const std::vector<std::size_t> readers = readers_of(network);
  std::vector<std::string> names;
  for (const Node& node : network.nodes) {
    if (!std::holds_alternative<Add>(node.layer)) continue;
    const NodeId deepest = *std::ranges::max_element(
        node.inputs, {}, [&](NodeId input) { return depths[index_of(input)]; });
    const Node& last = network[deepest];
    if (!std::holds_alternative<BatchNorm>(last.layer)) continue;
    if (readers[index_of(deepest)] == 1) names.push_back(last.name);
  }
  return names;
}

}  // namespace spillway::nets
