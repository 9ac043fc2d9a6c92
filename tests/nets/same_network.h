#pragma once

#include <string>

#include "nets/layer_kinds.h"
#include "nets/network.h"

namespace spillway::test {

/// Compares all fields, which nets/layer_kinds.h lists.
inline bool are_same(const nets::Layer& a, const nets::Layer& b) {
  if (a.index() != b.index()) return false;
  return std::visit(
      [&]<typename L>(const L& layer) {
        const L& other = std::get<L>(b);
        bool same = true;
        nets::for_each_field(nets::kind_of<L>(), [&](const auto& field) {
          same = same && layer.*field.member == other.*field.member;
        });
        return same;
      },
      a);
}

/// Describes the first difference between two networks; empty if all nodes are equal.
inline std::string difference(const nets::Network& a, const nets::Network& b) {
  if (a.name != b.name) return "the networks' names: " + a.name + ", " + b.name;
  if (a.nodes.size() != b.nodes.size()) {
    return std::to_string(a.nodes.size()) + " and " + std::to_string(b.nodes.size()) + " nodes";
  }
  for (std::size_t i = 0; i < a.nodes.size(); ++i) {
    const nets::Node& x = a.nodes[i];
    const nets::Node& y = b.nodes[i];
    if (x.name != y.name) return "the names " + x.name + " and " + y.name;
    if (x.inputs != y.inputs) return "what " + x.name + " reads";
    if (x.output != y.output) return "the shape of " + x.name;
    if (i > 0 && !are_same(x.layer, y.layer)) return "the layer " + x.name;
  }
  return {};
}

}  // namespace spillway::test
