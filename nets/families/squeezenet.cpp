#include "nets/families/squeezenet.h"

#include <string>

#include "nets/builder.h"

namespace spillway::nets {
namespace {

constexpr Pool kHalving{.kernel = square(3), .stride = square(2), .rounds_up = true};

NodeId add_with_relu(Builder& net, NodeId x, const std::string& name, const Convolution& layer) {
  return net.relu(name + ".relu", net.convolution(name, x, layer));
}

NodeId add_fire(Builder& net, NodeId x, const std::string& name, std::size_t squeezed,
                std::size_t expanded) {
  x = add_with_relu(net, x, name + ".squeeze", {.channels = squeezed});
  return net.concat(
      name, {add_with_relu(net, x, name + ".expand1x1", {.channels = expanded}),
             add_with_relu(net, x, name + ".expand3x3",
                           {.channels = expanded, .kernel = square(3), .padding = square(1)})});
}

}  // namespace

Network squeezenet(const Shape& image, std::size_t classes) {
  Builder net{"squeezenet", image};
  NodeId x = add_with_relu(net, net.input(), "conv1",
                           {.channels = 64, .kernel = square(3), .stride = square(2)});
  x = net.pool("pool1", x, kHalving);
  x = add_fire(net, add_fire(net, x, "fire2", 16, 64), "fire3", 16, 64);
  x = net.pool("pool3", x, kHalving);
  x = add_fire(net, add_fire(net, x, "fire4", 32, 128), "fire5", 32, 128);
  x = net.pool("pool5", x, kHalving);
  x = add_fire(net, add_fire(net, x, "fire6", 48, 192), "fire7", 48, 192);
  x = add_fire(net, add_fire(net, x, "fire8", 64, 256), "fire9", 64, 256);
  x = add_with_relu(net, net.dropout("dropout", x, {}), "conv10", {.channels = classes});
  return net.build(net.global_average_pool("avgpool", x));
}

}  // namespace spillway::nets
