#include "nets/builder.h"
#include "nets/families/published_networks.h"

namespace spillway::nets {
namespace {

constexpr std::size_t kSegments = 2;
constexpr std::size_t kBertWider = 4;
constexpr LayerNorm kBertNorm{.epsilon = 1e-12F};

// Attention, then two linear layers; each result is added to its input and normalized.
NodeId add_block(Builder& net, const std::string& name, const BertSizes& sizes, NodeId x) {
  NodeId y = net.linear(name + ".attention.self.qkv", x, {.features = 3 * sizes.width});
  y = net.add(name + ".attention.self", Attention{.heads = sizes.heads, .causal = false}, {y});
  y = net.linear(name + ".attention.output.dense", y, {.features = sizes.width});
  y = net.dropout(name + ".attention.output.dropout", y, {.probability = 0});
  y = net.sum(name + ".attention.output.sum", y, x);
  x = net.add(name + ".attention.output.LayerNorm", kBertNorm, {y});
  y = net.linear(name + ".intermediate.dense", x, {.features = kBertWider * sizes.width});
  y = net.add(name + ".intermediate.act", Gelu{}, {y});
  y = net.linear(name + ".output.dense", y, {.features = sizes.width});
  y = net.dropout(name + ".output.dropout", y, {.probability = 0});
  y = net.sum(name + ".output.sum", y, x);
  return net.add(name + ".output.LayerNorm", kBertNorm, {y});
}

}  // namespace

Network bert(const std::string& name, const BertSizes& sizes, const Shape& text,
             std::size_t vocabulary) {
  Builder net{name, text};
  const std::string embeddings = "bert.embeddings.";
  const NodeId table =
      net.add(embeddings + "word_embeddings",
              Embedding{.vocabulary = vocabulary, .features = sizes.width}, {net.input()});
  NodeId x = net.add(embeddings + "position_embeddings",
                     PositionEmbedding{.positions = sizes.context, .segments = kSegments}, {table});
  x = net.add(embeddings + "LayerNorm", kBertNorm, {x});
  x = net.dropout(embeddings + "dropout", x, {.probability = 0});
  for (std::size_t i = 0; i < sizes.layers; ++i) {
    x = add_block(net, "bert.encoder.layer." + std::to_string(i), sizes, x);
  }
  x = net.linear("cls.predictions.transform.dense", x, {.features = sizes.width});
  x = net.add("cls.predictions.transform.act", Gelu{}, {x});
  x = net.add("cls.predictions.transform.LayerNorm", kBertNorm, {x});
  return net.build(x, {.vocabulary = vocabulary, .bias = true}, table, "cls.predictions");
}

Network bert_base(const Shape& text, std::size_t vocabulary) {
  return bert("bert-base", {.layers = 12, .heads = 12, .width = 768}, text, vocabulary);
}
Network bert_large(const Shape& text, std::size_t vocabulary) {
  return bert("bert-large", {.layers = 24, .heads = 16, .width = 1024}, text, vocabulary);
}

}  // namespace spillway::nets
