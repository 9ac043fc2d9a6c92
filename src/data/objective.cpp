#include "src/data/objective.h"

#include <algorithm>
#include <variant>

namespace spillway {

Objective objective_of(const nets::Network& network) {
  const bool sees_all = std::ranges::any_of(network.nodes, [](const nets::Node& node) {
    const auto* const attention = std::get_if<nets::Attention>(&node.layer);
    return attention != nullptr && !attention->causal;
  });
  return sees_all ? Objective::kMaskedTokens : Objective::kNextToken;
}

}  // namespace spillway
