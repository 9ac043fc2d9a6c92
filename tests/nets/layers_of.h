#pragma once

#include <algorithm>
#include <cstddef>
#include <stdexcept>
#include <string>
#include <variant>

#include "nets/network.h"

namespace spillway::nets {

/// Returns the layer `name`. Throws: std::out_of_range when it does not exist.
inline const Node& find(const Network& network, const std::string& name) {
  const auto at = std::ranges::find(network.nodes, name, &Node::name);
  if (at == network.nodes.end()) throw std::out_of_range{name};
  return *at;
}

/// Returns the output shape of the layer `name`: "512x22x22".
inline std::string shape_of(const Network& network, const std::string& name) {
  return to_string(find(network, name).output);
}

/// Counts the layers of one kind.
template <typename Kind>
std::ptrdiff_t count(const Network& network) {
  return std::count_if(network.nodes.begin() + 1, network.nodes.end(),
                       [](const Node& node) { return std::holds_alternative<Kind>(node.layer); });
}

}  // namespace spillway::nets
