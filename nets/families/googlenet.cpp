#include "nets/families/googlenet.h"

#include <string>

#include "nets/families/convolution_unit.h"

namespace spillway::nets {
namespace {

constexpr Pool kHalving{.kernel = square(3), .stride = square(2), .rounds_up = true};
constexpr Pool kKeeping{.kernel = square(3), .stride = square(1), .padding = square(1)};

/// A row of the paper's table 1: channels of each convolution of a module.
struct Module {
  std::size_t of_1x1;
  std::size_t reduce_3x3, of_3x3;
  std::size_t reduce_5x5, of_5x5;
  std::size_t pool_projection;
};

NodeId add_module(Builder& net, NodeId x, const std::string& name, const Module& m) {
  const NodeId pooled = net.pool(name + ".pool", x, kKeeping);
  return net.concat(name,
                    {add_units(net, x, name + ".1x1", {{m.of_1x1}}),
                     add_units(net, x, name + ".3x3", {{m.reduce_3x3}, {m.of_3x3, square(3)}}),
                     add_units(net, x, name + ".5x5", {{m.reduce_5x5}, {m.of_5x5, square(3)}}),
                     add_units(net, pooled, name + ".projection", {{m.pool_projection}})});
}

// The side networks of the paper's section 5.
void add_auxiliary_head(Builder& net, NodeId x, const std::string& name, std::size_t classes) {
  x = net.pool(name + ".pool", x,
               {.kind = PoolKind::kAverage, .kernel = square(5), .stride = square(3)});
  x = add_units(net, x, name, {{128}});
  x = net.relu(name + ".relu", net.linear(name + ".fc1", x, {.features = 1024}));
  x = net.dropout(name + ".dropout", x, {.probability = 0.7F});
  net.auxiliary_loss(name + ".loss", net.linear(name + ".fc2", x, {.features = classes}), 0.3F);
}

Network build(const std::string& name, const Shape& image, std::size_t classes, bool has_heads) {
  Builder net{name, image};
  NodeId x = add_units(net, net.input(), "conv1", {{64, square(7), 2}});
  x = net.pool("pool1", x, kHalving);
  x = add_units(net, x, "conv2", {{64}, {192, square(3)}});
  x = net.pool("pool2", x, kHalving);
  x = add_module(net, x, "inception3a", {64, 96, 128, 16, 32, 32});
  x = add_module(net, x, "inception3b", {128, 128, 192, 32, 96, 64});
  x = net.pool("pool3", x, kHalving);
  x = add_module(net, x, "inception4a", {192, 96, 208, 16, 48, 64});
  if (has_heads) add_auxiliary_head(net, x, "aux1", classes);
  x = add_module(net, x, "inception4b", {160, 112, 224, 24, 64, 64});
  x = add_module(net, x, "inception4c", {128, 128, 256, 24, 64, 64});
  x = add_module(net, x, "inception4d", {112, 144, 288, 32, 64, 64});
  if (has_heads) add_auxiliary_head(net, x, "aux2", classes);
  x = add_module(net, x, "inception4e", {256, 160, 320, 32, 128, 128});
  x = net.pool("pool4", x, {.rounds_up = true});
  x = add_module(net, x, "inception5a", {256, 160, 320, 32, 128, 128});
  x = add_module(net, x, "inception5b", {384, 192, 384, 48, 128, 128});
  x = net.global_average_pool("avgpool", x);
  x = net.dropout("dropout", x, {.probability = 0.4F});
  return net.build(net.linear("fc", x, {.features = classes}));
}

}  // namespace

Network googlenet(const Shape& image, std::size_t classes) {
  return build("googlenet", image, classes, /*has_heads=*/false);
}

Network googlenet_with_heads(const Shape& image, std::size_t classes) {
  return build("googlenet+aux-heads", image, classes, /*has_heads=*/true);
}

}  // namespace spillway::nets
