#include <cstddef>
#include <string>
#include <vector>

#include "nets/builder.h"
#include "nets/families/published_networks.h"

namespace spillway::nets {
namespace {

/// Whether windows may extend beyond the image.
enum class Border {
  kSame,  ///< pads by half a kernel: with stride 1 the image keeps its size
  kValid  ///< does not pad: "V" in the figures of the Inception papers
};

/// Convolution without bias, batch norm and ReLU: the basic unit of GoogLeNet and Inception.
struct ConvolutionUnit {
  std::size_t channels;
  Extent kernel = square(1);
  std::size_t stride = 1;
  Border border = Border::kSame;
};

constexpr BatchNorm kUnitNorm{.epsilon = 1e-3F};  // as in the published weights

// Adds consecutive units: name.1.conv, name.1.bn, name.1.relu, name.2.conv and so on.
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

constexpr Border kValid = Border::kValid;
constexpr Extent k1x3{.height = 1, .width = 3};
constexpr Extent k3x1{.height = 3, .width = 1};
constexpr Extent k1x7{.height = 1, .width = 7};
constexpr Extent k7x1{.height = 7, .width = 1};

NodeId shrink(Builder& net, NodeId x, const std::string& name) {
  return net.pool(name + ".pool", x, {.kernel = square(3), .stride = square(2)});
}

// Average pooling of 3x3, then a 1x1 convolution. The published v3 counts the padding; the
// published v4 does not.
NodeId add_mean(Builder& net, NodeId x, const std::string& name, std::size_t channels,
                bool counts_padding) {
  const NodeId mean = net.pool(name + ".mean", x,
                               {.kind = PoolKind::kAverage,
                                .kernel = square(3),
                                .stride = square(1),
                                .padding = square(1),
                                .counts_padding = counts_padding});
  return add_units(net, mean, name + ".projection", {{channels}});
}

NodeId add_head(Builder& net, NodeId x, float dropout, std::size_t classes) {
  x = net.dropout("dropout", net.global_average_pool("avgpool", x), {.probability = dropout});
  return net.linear("fc", x, {.features = classes});
}

// ---- version 3; figures of its paper

// Figure 5: 35x35.
NodeId add_v3_a(Builder& net, NodeId x, const std::string& name, std::size_t projection) {
  return net.concat(name,
                    {add_units(net, x, name + ".1x1", {{64}}),
                     add_units(net, x, name + ".5x5", {{48}, {64, square(5)}}),
                     add_units(net, x, name + ".3x3", {{64}, {96, square(3)}, {96, square(3)}}),
                     add_mean(net, x, name, projection, /*counts_padding=*/true)});
}

// Figure 10: 35x35 to 17x17.
NodeId add_v3_b(Builder& net, NodeId x, const std::string& name) {
  return net.concat(name, {add_units(net, x, name + ".3x3", {{384, square(3), 2, kValid}}),
                           add_units(net, x, name + ".double3x3",
                                     {{64}, {96, square(3)}, {96, square(3), 2, kValid}}),
                           shrink(net, x, name)});
}

// Figure 6 with n = 7: 17x17.
NodeId add_v3_c(Builder& net, NodeId x, const std::string& name, std::size_t inner) {
  return net.concat(name,
                    {add_units(net, x, name + ".1x1", {{192}}),
                     add_units(net, x, name + ".7x7", {{inner}, {inner, k1x7}, {192, k7x1}}),
                     add_units(net, x, name + ".double7x7",
                               {{inner}, {inner, k7x1}, {inner, k1x7}, {inner, k7x1}, {192, k1x7}}),
                     add_mean(net, x, name, 192, /*counts_padding=*/true)});
}

// 17x17 to 8x8.
NodeId add_v3_d(Builder& net, NodeId x, const std::string& name) {
  return net.concat(name,
                    {add_units(net, x, name + ".3x3", {{192}, {320, square(3), 2, kValid}}),
                     add_units(net, x, name + ".7x7x3",
                               {{192}, {192, k1x7}, {192, k7x1}, {192, square(3), 2, kValid}}),
                     shrink(net, x, name)});
}

// Figure 7: 8x8, with two convolutions side by side.
NodeId add_v3_e(Builder& net, NodeId x, const std::string& name) {
  const NodeId once = add_units(net, x, name + ".3x3", {{384}});
  const NodeId twice = add_units(net, x, name + ".double3x3", {{448}, {384, square(3)}});
  return net.concat(name, {add_units(net, x, name + ".1x1", {{320}}),
                           add_units(net, once, name + ".3x3.across", {{384, k1x3}}),
                           add_units(net, once, name + ".3x3.down", {{384, k3x1}}),
                           add_units(net, twice, name + ".double3x3.across", {{384, k1x3}}),
                           add_units(net, twice, name + ".double3x3.down", {{384, k3x1}}),
                           add_mean(net, x, name, 192, /*counts_padding=*/true)});
}

// ---- version 4; figures of its paper

// Figure 3.
NodeId add_v4_stem(Builder& net, NodeId x) {
  x = add_units(net, x, "stem1",
                {{32, square(3), 2, kValid}, {32, square(3), 1, kValid}, {64, square(3)}});
  x = net.concat("stem2", {shrink(net, x, "stem2"),
                           add_units(net, x, "stem2.3x3", {{96, square(3), 2, kValid}})});
  x = net.concat("stem3", {add_units(net, x, "stem3.3x3", {{64}, {96, square(3), 1, kValid}}),
                           add_units(net, x, "stem3.7x7",
                                     {{64}, {64, k1x7}, {64, k7x1}, {96, square(3), 1, kValid}})});
  return net.concat("stem4", {add_units(net, x, "stem4.3x3", {{192, square(3), 2, kValid}}),
                              shrink(net, x, "stem4")});
}

// Figure 4: 35x35.
NodeId add_v4_a(Builder& net, NodeId x, const std::string& name) {
  return net.concat(
      name, {add_units(net, x, name + ".1x1", {{96}}),
             add_units(net, x, name + ".3x3", {{64}, {96, square(3)}}),
             add_units(net, x, name + ".double3x3", {{64}, {96, square(3)}, {96, square(3)}}),
             add_mean(net, x, name, 96, /*counts_padding=*/false)});
}

// Figure 7 with k, l, m and n of table 1: 35x35 to 17x17.
NodeId add_v4_reduction_a(Builder& net, NodeId x, const std::string& name) {
  return net.concat(name, {add_units(net, x, name + ".3x3", {{384, square(3), 2, kValid}}),
                           add_units(net, x, name + ".double3x3",
                                     {{192}, {224, square(3)}, {256, square(3), 2, kValid}}),
                           shrink(net, x, name)});
}

// Figure 5: 17x17.
NodeId add_v4_b(Builder& net, NodeId x, const std::string& name) {
  return net.concat(name, {add_units(net, x, name + ".1x1", {{384}}),
                           add_units(net, x, name + ".7x7", {{192}, {224, k1x7}, {256, k7x1}}),
                           add_units(net, x, name + ".double7x7",
                                     {{192}, {192, k7x1}, {224, k1x7}, {224, k7x1}, {256, k1x7}}),
                           add_mean(net, x, name, 128, /*counts_padding=*/false)});
}

// Figure 8: 17x17 to 8x8.
NodeId add_v4_reduction_b(Builder& net, NodeId x, const std::string& name) {
  return net.concat(name,
                    {add_units(net, x, name + ".3x3", {{192}, {192, square(3), 2, kValid}}),
                     add_units(net, x, name + ".7x7",
                               {{256}, {256, k1x7}, {320, k7x1}, {320, square(3), 2, kValid}}),
                     shrink(net, x, name)});
}

// Figure 6: 8x8, with two convolutions side by side.
NodeId add_v4_c(Builder& net, NodeId x, const std::string& name) {
  const NodeId once = add_units(net, x, name + ".3x3", {{384}});
  const NodeId twice = add_units(net, x, name + ".double3x3", {{384}, {448, k3x1}, {512, k1x3}});
  return net.concat(name, {add_units(net, x, name + ".1x1", {{256}}),
                           add_units(net, once, name + ".3x3.across", {{256, k1x3}}),
                           add_units(net, once, name + ".3x3.down", {{256, k3x1}}),
                           add_units(net, twice, name + ".double3x3.across", {{256, k1x3}}),
                           add_units(net, twice, name + ".double3x3.down", {{256, k3x1}}),
                           add_mean(net, x, name, 256, /*counts_padding=*/false)});
}

// The head on the last 17x17 grid.
void add_auxiliary_head(Builder& net, NodeId x, std::size_t classes) {
  x = net.pool("aux.pool", x,
               {.kind = PoolKind::kAverage, .kernel = square(5), .stride = square(3)});
  x = add_units(net, x, "aux", {{128}, {768, square(5), 1, kValid}});
  x = net.linear("aux.fc", net.global_average_pool("aux.avgpool", x), {.features = classes});
  net.auxiliary_loss("aux.loss", x, 0.4F);
}

Network build_v3(const std::string& name, const Shape& image, std::size_t classes, bool has_head) {
  Builder net{name, image};
  NodeId x = add_units(net, net.input(), "stem1",
                       {{32, square(3), 2, kValid}, {32, square(3), 1, kValid}, {64, square(3)}});
  x = add_units(net, shrink(net, x, "stem1"), "stem2", {{80}, {192, square(3), 1, kValid}});
  x = shrink(net, x, "stem2");
  x = add_v3_a(net, x, "mixed1", 32);
  x = add_v3_a(net, x, "mixed2", 64);
  x = add_v3_a(net, x, "mixed3", 64);
  x = add_v3_b(net, x, "mixed4");
  x = add_v3_c(net, x, "mixed5", 128);
  x = add_v3_c(net, x, "mixed6", 160);
  x = add_v3_c(net, x, "mixed7", 160);
  x = add_v3_c(net, x, "mixed8", 192);
  if (has_head) add_auxiliary_head(net, x, classes);
  x = add_v3_d(net, x, "mixed9");
  x = add_v3_e(net, x, "mixed10");
  x = add_v3_e(net, x, "mixed11");
  return net.build(add_head(net, x, 0.5F, classes));
}

constexpr Pool kHalving{.kernel = square(3), .stride = square(2), .rounds_up = true};
constexpr Pool kKeeping{.kernel = square(3), .stride = square(1), .padding = square(1)};

/// A row of the paper's table 1: the channels of a module's convolutions.
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

// The auxiliary classifiers of the paper's section 5.
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

Network inception_v3(const Shape& image, std::size_t classes) {
  return build_v3("inception-v3", image, classes, /*has_head=*/false);
}

Network inception_v3_with_head(const Shape& image, std::size_t classes) {
  return build_v3("inception-v3+aux-heads", image, classes, /*has_head=*/true);
}

Network inception_v4(const Shape& image, std::size_t classes) {
  Builder net{"inception-v4", image};
  NodeId x = add_v4_stem(net, net.input());
  for (const char* const number : {"1", "2", "3", "4"}) {
    x = add_v4_a(net, x, std::string{"a"} + number);
  }
  x = add_v4_reduction_a(net, x, "reduction_a");
  for (const char* const number : {"1", "2", "3", "4", "5", "6", "7"}) {
    x = add_v4_b(net, x, std::string{"b"} + number);
  }
  x = add_v4_reduction_b(net, x, "reduction_b");
  for (const char* const number : {"1", "2", "3"}) {
    x = add_v4_c(net, x, std::string{"c"} + number);
  }
  return net.build(add_head(net, x, 0.2F, classes));
}

Network googlenet(const Shape& image, std::size_t classes) {
  return build("googlenet", image, classes, /*has_heads=*/false);
}

Network googlenet_with_heads(const Shape& image, std::size_t classes) {
  return build("googlenet+aux-heads", image, classes, /*has_heads=*/true);
}

}  // namespace spillway::nets
