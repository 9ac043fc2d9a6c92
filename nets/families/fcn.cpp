#include <utility>

#include "nets/builder.h"
#include "nets/families/published_networks.h"

namespace spillway::nets {
namespace {

constexpr std::array<std::size_t, 5> kDepths{2, 2, 3, 3, 3};
constexpr std::size_t kFirstPadding = 100;

NodeId crop(Builder& net, const std::string& name, NodeId x, NodeId like, std::size_t offset) {
  return net.crop(name, x, like, {.is_centred = false, .offset = square(offset)});
}

// 3x3 convolutions with ReLU, then max pooling.
NodeId add_stage(Builder& net, NodeId x, std::size_t stage, std::size_t channels) {
  const std::string number = std::to_string(stage + 1);
  for (std::size_t i = 1; i <= kDepths.at(stage); ++i) {
    const std::string place = number + "_" + std::to_string(i);
    const bool is_first = stage == 0 && i == 1;
    x = net.convolution("conv" + place, x,
                        {.channels = channels,
                         .kernel = square(3),
                         .padding = square(is_first ? kFirstPadding : 1)});
    x = net.relu("relu" + place, x);
  }
  return net.pool("pool" + number, x, {.rounds_up = true});
}

// VGG's linear layers as convolutions.
NodeId add_hidden(Builder& net, NodeId x, std::size_t channels) {
  for (const auto& [number, side] : {std::pair{"6", 7U}, std::pair{"7", 1U}}) {
    const std::string name{number};
    x = net.convolution("fc" + name, x, {.channels = channels, .kernel = square(side)});
    x = net.relu("relu" + name, x);
    x = net.dropout("drop" + name, x, {});
  }
  return x;
}

NodeId upsample(Builder& net, const std::string& name, NodeId x, std::size_t times) {
  return net.transposed_convolution(name, x,
                                    {.channels = net.shape(x).channels,
                                     .kernel = square(2 * times),
                                     .stride = square(times),
                                     .bias = false});
}

// Adds the upsampled scores and the scores of an earlier pooling.
NodeId refine(Builder& net, const std::string& upsampled, NodeId scores, const std::string& pool,
              NodeId x, std::size_t offset) {
  const std::size_t classes = net.shape(scores).channels;
  const NodeId up = upsample(net, upsampled, scores, 2);
  const NodeId finer = net.convolution("score_" + pool, x, {.channels = classes});
  return net.sum("fuse_" + pool, up, crop(net, "score_" + pool + "c", finer, up, offset));
}

}  // namespace

Network fcn(std::string name, FcnStride stride, const FcnWidths& widths, const Shape& image,
            std::size_t classes) {
  Builder net{std::move(name), image};
  std::array<NodeId, kDepths.size()> pools{};
  NodeId x = net.input();
  for (std::size_t i = 0; i < pools.size(); ++i) {
    pools.at(i) = x = add_stage(net, x, i, widths.stages.at(i));
  }
  x = net.convolution("score_fr", add_hidden(net, x, widths.hidden), {.channels = classes});
  if (stride == FcnStride::k32) {
    return net.build(crop(net, "score", upsample(net, "upscore", x, 32), net.input(), 19));
  }
  x = refine(net, "upscore2", x, "pool4", pools[3], 5);
  x = refine(net, "upscore_pool4", x, "pool3", pools[2], 9);
  return net.build(crop(net, "score", upsample(net, "upscore8", x, 8), net.input(), 31));
}

Network fcn32s(const Shape& image, std::size_t classes) {
  return fcn("fcn32s", FcnStride::k32, {}, image, classes);
}

Network fcn8s(const Shape& image, std::size_t classes) {
  return fcn("fcn8s", FcnStride::k8, {}, image, classes);
}

}  // namespace spillway::nets
