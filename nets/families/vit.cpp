#include "nets/builder.h"
#include "nets/families/published_networks.h"

namespace spillway::nets {
namespace {

constexpr std::size_t kVitWider = 4;
constexpr LayerNorm kVitNorm{.epsilon = 1e-12F};

NodeId add_block(Builder& net, const std::string& name, const VitSizes& sizes, NodeId x) {
  NodeId y = net.add(name + ".layernorm_before", kVitNorm, {x});
  y = net.linear(name + ".attention.attention.qkv", y, {.features = 3 * sizes.width});
  y = net.add(name + ".attention.attention", Attention{.heads = sizes.heads, .causal = false}, {y});
  y = net.linear(name + ".attention.output.dense", y, {.features = sizes.width});
  y = net.dropout(name + ".attention.output.dropout", y, {.probability = 0});
  x = net.sum(name + ".attention.sum", x, y);
  y = net.add(name + ".layernorm_after", kVitNorm, {x});
  y = net.linear(name + ".intermediate.dense", y, {.features = kVitWider * sizes.width});
  y = net.add(name + ".intermediate.act", Gelu{}, {y});
  y = net.linear(name + ".output.dense", y, {.features = sizes.width});
  y = net.dropout(name + ".output.dropout", y, {.probability = 0});
  return net.sum(name + ".output.sum", x, y);
}

}  // namespace

Network vit(const std::string& name, const VitSizes& sizes, const Shape& image,
            std::size_t classes) {
  Builder net{name, image};
  const std::string embeddings = "vit.embeddings";
  NodeId x = net.convolution(
      embeddings + ".patch_embeddings.projection", net.input(),
      {.channels = sizes.width, .kernel = square(sizes.patch), .stride = square(sizes.patch)});
  x = net.add(embeddings + ".cls", ImageTokens{}, {x});
  x = net.add(embeddings + ".position_embeddings", PositionEmbedding{}, {x});
  x = net.dropout(embeddings + ".dropout", x, {.probability = 0});
  for (std::size_t i = 0; i < sizes.layers; ++i) {
    x = add_block(net, "vit.encoder.layer." + std::to_string(i), sizes, x);
  }
  x = net.add("vit.layernorm", kVitNorm, {x});
  x = net.add("vit.first_token", FirstToken{}, {x});
  return net.build(net.linear("classifier", x, {.features = classes}));
}

Network vit_b16(const Shape& image, std::size_t classes) {
  return vit("vit-b16", {.layers = 12, .heads = 12, .width = 768}, image, classes);
}
Network vit_l16(const Shape& image, std::size_t classes) {
  return vit("vit-l16", {.layers = 24, .heads = 16, .width = 1024}, image, classes);
}

}  // namespace spillway::nets
