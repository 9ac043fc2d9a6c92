#include "nets/builder.h"
#include "nets/families/published_networks.h"
#include "um/error.h"

namespace spillway::nets {

void expect_divided(const std::string& network, std::size_t width, std::size_t heads) {
  if (width % heads == 0) return;
  throw um::Error{"network " + network + " cannot divide a width of " + std::to_string(width) +
                  " among " + std::to_string(heads) + " heads"};
}

namespace {

constexpr std::size_t kContext = 1024;
constexpr std::size_t kGptWider = 4;  // inner width of a block's second half, in widths

// Attention, then two linear layers; each half normalizes its input and adds its result to it.
NodeId add_block(Builder& net, const std::string& name, const GptSizes& sizes, NodeId x) {
  NodeId y = net.add(name + ".ln_1", LayerNorm{}, {x});
  y = net.linear(name + ".attn.c_attn", y, {.features = 3 * sizes.width});
  y = net.add(name + ".attn", Attention{.heads = sizes.heads}, {y});
  y = net.linear(name + ".attn.c_proj", y, {.features = sizes.width});
  y = net.dropout(name + ".attn.resid_dropout", y, {.probability = 0});
  x = net.sum(name + ".attn.sum", x, y);
  y = net.add(name + ".ln_2", LayerNorm{}, {x});
  y = net.linear(name + ".mlp.c_fc", y, {.features = kGptWider * sizes.width});
  y = net.add(name + ".mlp.act", Gelu{.tanh = true}, {y});
  y = net.linear(name + ".mlp.c_proj", y, {.features = sizes.width});
  y = net.dropout(name + ".mlp.dropout", y, {.probability = 0});
  return net.sum(name + ".mlp.sum", x, y);
}

}  // namespace

Network gpt(const std::string& name, const GptSizes& sizes, const Shape& text,
            std::size_t vocabulary) {
  expect_divided(name, sizes.width, sizes.heads);
  Builder net{name, text};
  const NodeId table =
      net.add("wte", Embedding{.vocabulary = vocabulary, .features = sizes.width}, {net.input()});
  NodeId x = net.add("wpe", PositionEmbedding{.positions = sizes.context}, {table});
  x = net.dropout("drop", x, {.probability = 0});
  for (std::size_t i = 0; i < sizes.layers; ++i) {
    x = add_block(net, "h." + std::to_string(i), sizes, x);
  }
  x = net.add("ln_f", LayerNorm{}, {x});
  return net.build(x, {.vocabulary = vocabulary}, table, "lm_head");
}

Network gpt2(const Shape& text, std::size_t vocabulary) {
  return gpt("gpt2", {.layers = 12, .heads = 12, .width = 768, .context = kContext}, text,
             vocabulary);
}
Network gpt2_medium(const Shape& text, std::size_t vocabulary) {
  return gpt("gpt2-medium", {.layers = 24, .heads = 16, .width = 1024, .context = kContext}, text,
             vocabulary);
}
Network gpt2_large(const Shape& text, std::size_t vocabulary) {
  return gpt("gpt2-large", {.layers = 36, .heads = 20, .width = 1280, .context = kContext}, text,
             vocabulary);
}
Network gpt2_xl(const Shape& text, std::size_t vocabulary) {
  return gpt("gpt2-xl", {.layers = 48, .heads = 25, .width = 1600, .context = kContext}, text,
             vocabulary);
}

}  // namespace spillway::nets
