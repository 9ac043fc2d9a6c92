#include "nets/families/overfeat.h"

#include <string>

#include "nets/builder.h"

namespace spillway::nets {
namespace {

NodeId add_convolution(Builder& net, NodeId x, const std::string& number,
                       const Convolution& layer) {
  return net.relu("relu" + number, net.convolution("conv" + number, x, layer));
}

}  // namespace

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

}  // namespace spillway::nets
