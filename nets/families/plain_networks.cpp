#include <string>

#include "nets/builder.h"
#include "nets/families/published_networks.h"

namespace spillway::nets {
namespace {

constexpr std::size_t kHidden = 4096;
constexpr Pool kPool{.kernel = square(3), .stride = square(2)};
// The paper's alpha of 1e-4 applies to each of the five channels.
constexpr LocalResponseNorm kNorm{.size = 5, .alpha = 5e-4F, .beta = 0.75F, .k = 2};

NodeId add_convolution(Builder& net, NodeId x, const std::string& number,
                       const Convolution& layer) {
  return net.relu("relu" + number, net.convolution("conv" + number, x, layer));
}

constexpr Pool kCeilPool{.kernel = square(3), .stride = square(2), .rounds_up = true};

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

Network alexnet(const Shape& image, std::size_t classes) {
  Builder net{"alexnet", image};
  NodeId x = add_convolution(net, net.input(), "1",
                             {.channels = 96, .kernel = square(11), .stride = square(4)});
  x = net.pool("pool1", net.local_response_norm("norm1", x, kNorm), kPool);
  x = add_convolution(net, x, "2", {.channels = 256, .kernel = square(5), .padding = square(2)});
  x = net.pool("pool2", net.local_response_norm("norm2", x, kNorm), kPool);
  x = add_convolution(net, x, "3", {.channels = 384, .kernel = square(3), .padding = square(1)});
  x = add_convolution(net, x, "4", {.channels = 384, .kernel = square(3), .padding = square(1)});
  x = add_convolution(net, x, "5", {.channels = 256, .kernel = square(3), .padding = square(1)});
  x = net.pool("pool5", x, kPool);
  for (const std::string number : {"6", "7"}) {
    x = net.relu("relu" + number, net.linear("fc" + number, x, {.features = kHidden}));
    x = net.dropout("drop" + number, x, {});
  }
  return net.build(net.linear("fc8", x, {.features = classes}));
}

Network lenet(const Shape& image, std::size_t classes) {
  Builder net{"lenet", image};
  NodeId x = net.input();
  x = net.convolution("conv1", x, {.channels = 6, .kernel = square(5), .padding = square(2)});
  x = net.relu("relu1", x);
  x = net.pool("pool1", x, {});
  x = net.convolution("conv2", x, {.channels = 16, .kernel = square(5)});
  x = net.relu("relu2", x);
  x = net.pool("pool2", x, {});
  x = net.linear("fc3", x, {.features = 120});
  x = net.relu("relu3", x);
  x = net.linear("fc4", x, {.features = 84});
  x = net.relu("relu4", x);
  return net.build(net.linear("fc5", x, {.features = classes}));
}

Network overfeat(const Shape& image, std::size_t classes) {
  Builder net{"overfeat", image};
  NodeId x = add_convolution(net, net.input(), "1",
                             {.channels = 96, .kernel = square(11), .stride = square(4)});
  x = net.pool("pool1", x, {});
  x = add_convolution(net, x, "2", {.channels = 256, .kernel = square(5)});
  x = net.pool("pool2", x, {});
  x = add_convolution(net, x, "3", {.channels = 512, .kernel = square(3), .padding = square(1)});
  x = add_convolution(net, x, "4", {.channels = 1024, .kernel = square(3), .padding = square(1)});
  x = add_convolution(net, x, "5", {.channels = 1024, .kernel = square(3), .padding = square(1)});
  x = net.pool("pool5", x, {});
  x = net.relu("relu6", net.linear("fc6", x, {.features = 3072}));
  x = net.dropout("drop6", x, {});
  x = net.relu("relu7", net.linear("fc7", x, {.features = 4096}));
  x = net.dropout("drop7", x, {});
  return net.build(net.linear("fc8", x, {.features = classes}));
}

Network squeezenet(const Shape& image, std::size_t classes) {
  Builder net{"squeezenet", image};
  NodeId x = add_with_relu(net, net.input(), "conv1",
                           {.channels = 64, .kernel = square(3), .stride = square(2)});
  x = net.pool("pool1", x, kCeilPool);
  x = add_fire(net, add_fire(net, x, "fire2", 16, 64), "fire3", 16, 64);
  x = net.pool("pool3", x, kCeilPool);
  x = add_fire(net, add_fire(net, x, "fire4", 32, 128), "fire5", 32, 128);
  x = net.pool("pool5", x, kCeilPool);
  x = add_fire(net, add_fire(net, x, "fire6", 48, 192), "fire7", 48, 192);
  x = add_fire(net, add_fire(net, x, "fire8", 64, 256), "fire9", 64, 256);
  x = add_with_relu(net, net.dropout("dropout", x, {}), "conv10", {.channels = classes});
  return net.build(net.global_average_pool("avgpool", x));
}

}  // namespace spillway::nets
