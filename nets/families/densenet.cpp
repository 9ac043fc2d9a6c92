#include <array>
#include <string>
#include <utility>
#include <vector>

#include "nets/builder.h"
#include "nets/families/published_networks.h"

namespace spillway::nets {
namespace {

constexpr std::size_t kWiderInside = 4;  // a 1x1 convolution makes four times a layer's growth

struct Design {
  std::size_t growth;                 // channels added by each layer
  std::array<std::size_t, 4> layers;  // per block
};

// Batch norm and ReLU, then the convolution, which has no bias.
NodeId add_dense_unit(Builder& net, NodeId x, const std::string& name, const std::string& number,
                      const Convolution& layer) {
  x = net.relu(name + ".relu" + number, net.batch_norm(name + ".norm" + number, x));
  Convolution unbiased = layer;
  unbiased.bias = false;
  return net.convolution(name + ".conv" + number, x, unbiased);
}

// Dense block: each layer reads the block's input and all earlier new channels. Concat reads the
// original parts, so that it can be recomputed from them alone.
NodeId add_block(Builder& net, NodeId x, const std::string& name, std::size_t layers,
                 std::size_t growth) {
  std::vector<NodeId> parts{x};
  for (std::size_t i = 1; i <= layers; ++i) {
    const std::string layer = name + ".denselayer" + std::to_string(i);
    NodeId y = add_dense_unit(net, x, layer, "1", {.channels = kWiderInside * growth});
    y = add_dense_unit(net, y, layer, "2",
                       {.channels = growth, .kernel = square(3), .padding = square(1)});
    parts.push_back(y);
    x = net.concat(layer + ".concat", parts);
  }
  return x;
}

Network densenet(std::string name, const Design& design, const Shape& image, std::size_t classes) {
  Builder net{std::move(name), image};
  NodeId x = net.convolution("conv0", net.input(),
                             {.channels = 2 * design.growth,
                              .kernel = square(7),
                              .stride = square(2),
                              .padding = square(3),
                              .bias = false});
  x = net.relu("relu0", net.batch_norm("norm0", x));
  x = net.pool("pool0", x, {.kernel = square(3), .stride = square(2), .padding = square(1)});
  for (std::size_t i = 0; i < design.layers.size(); ++i) {
    const std::string number = std::to_string(i + 1);
    if (i > 0) {  // halves the channels, the height and the width
      const std::string transition = "transition" + std::to_string(i);
      x = add_dense_unit(net, x, transition, "", {.channels = net.shape(x).channels / 2});
      x = net.pool(transition + ".pool", x, {.kind = PoolKind::kAverage});
    }
    x = add_block(net, x, "denseblock" + number, design.layers[i], design.growth);
  }
  x = net.relu("relu5", net.batch_norm("norm5", x));
  x = net.global_average_pool("avgpool", x);
  return net.build(net.linear("classifier", x, {.features = classes}));
}

}  // namespace

Network densenet121(const Shape& image, std::size_t classes) {
  return densenet("densenet121", {.growth = 32, .layers = {6, 12, 24, 16}}, image, classes);
}

Network densenet161(const Shape& image, std::size_t classes) {
  return densenet("densenet161", {.growth = 48, .layers = {6, 12, 36, 24}}, image, classes);
}

Network densenet169(const Shape& image, std::size_t classes) {
  return densenet("densenet169", {.growth = 32, .layers = {6, 12, 32, 32}}, image, classes);
}

Network densenet201(const Shape& image, std::size_t classes) {
  return densenet("densenet201", {.growth = 32, .layers = {6, 12, 48, 32}}, image, classes);
}

}  // namespace spillway::nets
