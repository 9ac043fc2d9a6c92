#pragma once

#include <string>
#include <vector>

#include "nets/network.h"

namespace spillway::nets {

/// The rules for layers within their network, beyond shapes:
/// * A loss over a vocabulary is the last layer; its table is an embedding of the same vocabulary
///   that another layer reads.
/// * An auxiliary loss has the same labels as the last layer.
/// * An embedding knows all tokens of the network's input.
/// * A layer that only gives a crop its size has no trained weights.
class LayerRoles {
 public:
  /// Requires: `network` is complete and outlives this object. Complexity: one visit of each node
  /// and each of its inputs, for all roles together.
  explicit LayerRoles(const Network& network);

  /// Throws: um::Error that names the layer of `node` when it breaks a rule.
  void expect(const Node& node) const;

 private:
  const Network& network_;
  // By node:
  std::vector<bool> is_read_;     // a layer reads its values
  std::vector<bool> is_trained_;  // its values depend on trained weights
};

/// Returns the batch norms that end residual branches: for each Add, its input on the longest path,
/// if that is a BatchNorm read only by this Add. A projection shortcut ends with a batch norm, too,
/// but has fewer layers.
[[nodiscard]] std::vector<std::string> residual_norms(const Network& network);

}  // namespace spillway::nets
