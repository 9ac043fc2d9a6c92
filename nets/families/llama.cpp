#include "nets/builder.h"
#include "nets/families/published_networks.h"
#include "um/error.h"

namespace spillway::nets {
namespace {

NodeId add_block(Builder& net, const std::string& name, const LlamaSizes& sizes, NodeId x) {
  const std::size_t head = sizes.width / sizes.heads;
  NodeId y = net.add(name + ".input_layernorm", RmsNorm{}, {x});
  y = net.linear(name + ".self_attn.qkv_proj", y,
                 {.features = (sizes.heads + 2 * sizes.kv_heads) * head, .bias = false});
  y = net.add(name + ".self_attn.rotary", Rotary{.heads = sizes.heads, .kv_heads = sizes.kv_heads},
              {y});
  y = net.add(name + ".self_attn", Attention{.heads = sizes.heads, .kv_heads = sizes.kv_heads},
              {y});
  y = net.linear(name + ".self_attn.o_proj", y, {.features = sizes.width, .bias = false});
  x = net.sum(name + ".self_attn.sum", x, y);
  y = net.add(name + ".post_attention_layernorm", RmsNorm{}, {x});
  y = net.linear(name + ".mlp.gate_up_proj", y, {.features = 2 * sizes.hidden, .bias = false});
  y = net.add(name + ".mlp.act", Swiglu{}, {y});
  y = net.linear(name + ".mlp.down_proj", y, {.features = sizes.width, .bias = false});
  return net.sum(name + ".mlp.sum", x, y);
}

}  // namespace

Network llama(const std::string& name, const LlamaSizes& sizes, const Shape& text,
              std::size_t vocabulary) {
  expect_divided(name, sizes.width, sizes.heads);
  if (text.height > sizes.context) {
    throw um::Error{"network " + name + " reads at most " + std::to_string(sizes.context) +
                    " tokens, not " + std::to_string(text.height) +
                    "; use a smaller --sequence-length"};
  }
  Builder net{name, text};
  NodeId x = net.add("model.embed_tokens",
                     Embedding{.vocabulary = vocabulary, .features = sizes.width}, {net.input()});
  for (std::size_t i = 0; i < sizes.layers; ++i) {
    x = add_block(net, "model.layers." + std::to_string(i), sizes, x);
  }
  x = net.add("model.norm", RmsNorm{}, {x});
  return net.build(x, {.vocabulary = vocabulary}, {}, "lm_head");
}

}  // namespace spillway::nets
