#pragma once

#include <vector>

#include "nets/network.h"

namespace spillway::nets {

/// What layers have to do with the rest of their network, beside the shapes that they read: a loss
/// over a vocabulary is the last layer, and its table an embedding of its vocabulary that is read;
/// an auxiliary loss has the labels of the last one; an embedding knows all tokens that the network
/// is given; what only lends a crop its size has nothing to train.
class LayerRoles {
 public:
  /// Requires: `network` has all its layers, and outlives this.
  /// Complexity: one look at each node and each of its inputs, for all roles together.
  explicit LayerRoles(const Network& network);

  /// Throws: um::Error that names the layer of `node` when it has no such role.
  void expect(const Node& node) const;

 private:
  const Network& network_;
  // By node:
  std::vector<bool> is_read_;     // a layer reads its numbers
  std::vector<bool> is_trained_;  // its numbers depend on trained ones
};

}  // namespace spillway::nets
