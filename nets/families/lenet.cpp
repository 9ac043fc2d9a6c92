#include "nets/families/lenet.h"

#include "nets/builder.h"

namespace spillway::nets {

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

}  // namespace spillway::nets
