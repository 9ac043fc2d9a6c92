#pragma once

#include "nets/network.h"

namespace spillway::nets {

/// What the layer of `node` has to do with the rest of `network`, beside the shapes that it reads:
/// a loss over a vocabulary is the last layer, and its table an embedding of its vocabulary that is
/// read; an auxiliary loss has the labels of the last one; an embedding knows all tokens that the
/// network is given; what only lends a crop its size has nothing to train. Requires: the network
/// has all its layers. Throws: um::Error that names the layer when that is not so.
void expect_role(const Network& network, const Node& node);

}  // namespace spillway::nets
