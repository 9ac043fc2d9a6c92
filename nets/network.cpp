#include "nets/network.h"

namespace spillway::nets {
namespace {

// Trainable numbers of one layer that reads `x`.
struct Count {
  Shape x;

  std::size_t operator()(const Convolution& layer) const {
    const std::size_t weights =
        x.channels / layer.groups * layer.kernel.height * layer.kernel.width;
    return layer.channels * (weights + (layer.bias ? 1 : 0));
  }
  std::size_t operator()(const TransposedConvolution& layer) const {
    const std::size_t weights =
        x.channels * (layer.channels / layer.groups) * layer.kernel.height * layer.kernel.width;
    return weights + (layer.bias ? layer.channels : 0);
  }
  std::size_t operator()(const BatchNorm& /*layer*/) const { return 2 * x.channels; }
  std::size_t operator()(const Linear& layer) const {
    return layer.features * (x.elements() + (layer.bias ? 1 : 0));
  }
  template <typename Other>
  std::size_t operator()(const Other& /*layer*/) const {
    return 0;
  }
};

}  // namespace

std::size_t count_parameters(const Network& network) {
  std::size_t count = 0;
  for (const Node& node : network.nodes) {
    if (node.inputs.empty()) continue;  // the image
    count += std::visit(Count{network[node.inputs[0]].output}, node.layer);
  }
  return count;
}

}  // namespace spillway::nets
