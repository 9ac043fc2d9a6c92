#include "nets/families/alexnet.h"

#include <string>

#include "nets/builder.h"

namespace spillway::nets {
namespace {

constexpr std::size_t kHidden = 4096;
constexpr Pool kPool{.kernel = square(3), .stride = square(2)};
// The paper's 1e-4 is for each of the five channels.
constexpr LocalResponseNorm kNorm{.size = 5, .alpha = 5e-4F, .beta = 0.75F, .k = 2};

NodeId add_convolution(Builder& net, NodeId x, const std::string& number,
                       const Convolution& layer) {
  return net.relu("relu" + number, net.convolution("conv" + number, x, layer));
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

}  // namespace spillway::nets
