#pragma once

#include <cstddef>
#include <vector>

#include "nets/network.h"

namespace spillway {

/// A layer of a network as it is executed: a layer followed by a ReLU that nobody else reads in
/// between is one.
struct FusedLayer {
  nets::NodeId node;    ///< whose layer it is
  nets::NodeId output;  ///< whose value it makes: the ReLU's when fused, else `node`
  bool relu;
};

/// The layers of `network` in order, without the image. Convolution, transposed or not, batch norm,
/// linear and add take a following ReLU in.
[[nodiscard]] std::vector<FusedLayer> fuse(const nets::Network& network);

/// How many layers read the value of each node; that a crop has another's size is no reading.
[[nodiscard]] std::vector<std::size_t> count_readers(const nets::Network& network);

}  // namespace spillway
