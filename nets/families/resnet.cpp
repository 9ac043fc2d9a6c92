#include <utility>

#include "nets/builder.h"
#include "nets/families/published_networks.h"
#include "um/error.h"

namespace spillway::nets {
namespace {

enum class BlockKind { kBasic, kBottleneck };

constexpr std::size_t kWidth = 64;     // channels of the first stage; doubled by each later stage
constexpr std::size_t kExpansion = 4;  // output channels of a bottleneck per inner channel

/// The settings of one block; only the stride differs within a stage.
struct Block {
  BlockKind kind;
  std::size_t width;
  std::size_t stride;

  [[nodiscard]] std::size_t channels() const {
    return kind == BlockKind::kBasic ? width : kExpansion * width;
  }
};

// A convolution without bias, and its batch norm. Pads a kernel of 3 by 1 and a kernel of 7 by 3.
NodeId add_unit(Builder& net, NodeId x, const std::string& convolution, const std::string& norm,
                const Convolution& layer) {
  Convolution unbiased = layer;
  unbiased.padding = {layer.kernel.height / 2, layer.kernel.width / 2};
  unbiased.bias = false;
  return net.batch_norm(norm, net.convolution(convolution, x, unbiased));
}

// Adds unit `number` of a block: block.conv1, block.bn1.
NodeId add_inner(Builder& net, NodeId x, const std::string& block, const std::string& number,
                 const Convolution& layer) {
  return add_unit(net, x, block + ".conv" + number, block + ".bn" + number, layer);
}

NodeId add_basic(Builder& net, NodeId x, const std::string& name, const Block& block) {
  x = add_inner(net, x, name, "1",
                {.channels = block.width, .kernel = square(3), .stride = square(block.stride)});
  x = net.relu(name + ".relu1", x);
  return add_inner(net, x, name, "2", {.channels = block.width, .kernel = square(3)});
}

NodeId add_bottleneck(Builder& net, NodeId x, const std::string& name, const Block& block) {
  x = add_inner(net, x, name, "1", {.channels = block.width});
  x = net.relu(name + ".relu1", x);
  x = add_inner(net, x, name, "2",
                {.channels = block.width, .kernel = square(3), .stride = square(block.stride)});
  x = net.relu(name + ".relu2", x);
  return add_inner(net, x, name, "3", {.channels = block.channels()});
}

// The shortcut is x itself, or a projection if the block changes the shape.
NodeId add_block(Builder& net, NodeId x, const std::string& name, const Block& block) {
  const NodeId y = block.kind == BlockKind::kBasic ? add_basic(net, x, name, block)
                                                   : add_bottleneck(net, x, name, block);
  NodeId shortcut = x;
  if (block.stride != 1 || net.shape(x).channels != block.channels()) {
    shortcut = add_unit(net, x, name + ".downsample.0", name + ".downsample.1",
                        {.channels = block.channels(), .stride = square(block.stride)});
  }
  return net.relu(name + ".relu", net.sum(name + ".add", y, shortcut));
}

Network resnet(std::string name, BlockKind kind, const ResnetDepths& depths, const Shape& image,
               std::size_t classes) {
  Builder net{std::move(name), image};
  NodeId x = add_unit(net, net.input(), "conv1", "bn1",
                      {.channels = kWidth, .kernel = square(7), .stride = square(2)});
  x = net.relu("relu", x);
  x = net.pool("maxpool", x, {.kernel = square(3), .stride = square(2), .padding = square(1)});
  for (std::size_t stage = 0; stage < depths.size(); ++stage) {
    um::expects(depths[stage] > 0, "a block in each stage");
    for (std::size_t i = 0; i < depths[stage]; ++i) {
      const bool shrinks = stage > 0 && i == 0;
      x = add_block(net, x, "layer" + std::to_string(stage + 1) + "." + std::to_string(i),
                    {.kind = kind, .width = kWidth << stage, .stride = shrinks ? 2U : 1U});
    }
  }
  x = net.global_average_pool("avgpool", x);
  return net.build(net.linear("fc", x, {.features = classes}));
}

}  // namespace

Network resnet18(const Shape& image, std::size_t classes) {
  return resnet("resnet18", BlockKind::kBasic, {2, 2, 2, 2}, image, classes);
}

Network resnet34(const Shape& image, std::size_t classes) {
  return resnet("resnet34", BlockKind::kBasic, {3, 4, 6, 3}, image, classes);
}

Network bottleneck_resnet(std::string name, const ResnetDepths& depths, const Shape& image,
                          std::size_t classes) {
  return resnet(std::move(name), BlockKind::kBottleneck, depths, image, classes);
}

Network resnet50(const Shape& image, std::size_t classes) {
  return bottleneck_resnet("resnet50", {3, 4, 6, 3}, image, classes);
}

Network resnet101(const Shape& image, std::size_t classes) {
  return bottleneck_resnet("resnet101", {3, 4, 23, 3}, image, classes);
}

Network resnet152(const Shape& image, std::size_t classes) {
  return bottleneck_resnet("resnet152", {3, 8, 36, 3}, image, classes);
}

}  // namespace spillway::nets
