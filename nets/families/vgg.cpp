#include <utility>

#include "nets/builder.h"
#include "nets/families/published_networks.h"
#include "um/error.h"

namespace spillway::nets {
namespace {

constexpr VggDepths kWidths{64, 128, 256, 512, 512};  // channels per stage
constexpr std::size_t kFeatures = 4096;

// 3x3 convolutions with ReLU, then max pooling.
NodeId add_stage(Builder& net, NodeId x, const std::string& number, std::size_t convolutions,
                 std::size_t channels) {
  for (std::size_t i = 1; i <= convolutions; ++i) {
    const std::string place = number + "_" + std::to_string(i);
    x = net.convolution("conv" + place, x,
                        {.channels = channels, .kernel = square(3), .padding = square(1)});
    x = net.relu("relu" + place, x);
  }
  return net.pool("pool" + number, x, {});
}

}  // namespace

Network vgg(std::string name, const VggDepths& depths, const Shape& image, std::size_t classes) {
  Builder net{std::move(name), image};
  NodeId x = net.input();
  for (std::size_t i = 0; i < depths.size(); ++i) {
    um::expects(depths[i] > 0, "a convolution in each stage");
    x = add_stage(net, x, std::to_string(i + 1), depths[i], kWidths[i]);
  }
  for (const std::string number : {"6", "7"}) {
    x = net.linear("fc" + number, x, {.features = kFeatures});
    x = net.relu("relu" + number, x);
    x = net.dropout("drop" + number, x, {});
  }
  return net.build(net.linear("fc8", x, {.features = classes}));
}

Network vgg11(const Shape& image, std::size_t classes) {
  return vgg("vgg11", {1, 1, 2, 2, 2}, image, classes);
}

Network vgg13(const Shape& image, std::size_t classes) {
  return vgg("vgg13", {2, 2, 2, 2, 2}, image, classes);
}

Network vgg16(const Shape& image, std::size_t classes) {
  return vgg("vgg16", {2, 2, 3, 3, 3}, image, classes);
}

Network vgg19(const Shape& image, std::size_t classes) {
  return vgg("vgg19", {2, 2, 4, 4, 4}, image, classes);
}

Network vgg101(const Shape& image, std::size_t classes) {
  return vgg("vgg101", {2, 22, 66, 4, 4}, image, classes);
}

}  // namespace spillway::nets
