#include "nets/families/convolution_unit.h"

namespace spillway::nets {
namespace {

constexpr BatchNorm kUnitNorm{.epsilon = 1e-3F};  // as in the published weights

}  // namespace

NodeId add_units(Builder& net, NodeId x, const std::string& name,
                 const std::vector<ConvolutionUnit>& units) {
  for (std::size_t i = 0; i < units.size(); ++i) {
    const std::string place = name + "." + std::to_string(i + 1);
    const auto& [channels, kernel, stride, border] = units[i];
    const Extent half{.height = kernel.height / 2, .width = kernel.width / 2};
    x = net.convolution(place + ".conv", x,
                        {.channels = channels,
                         .kernel = kernel,
                         .stride = square(stride),
                         .padding = border == Border::kSame ? half : square(0),
                         .bias = false});
    x = net.relu(place + ".relu", net.batch_norm(place + ".bn", x, kUnitNorm));
  }
  return x;
}

}  // namespace spillway::nets
