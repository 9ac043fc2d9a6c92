#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "src/numbers/rotary_angles.h"
#include "src/onnx/sequence_operators.h"

namespace spillway {
namespace {

using Sizes = std::vector<std::int64_t>;

// How the channels of a token are cut: queries, then keys, then values, each of one width.
struct Heads {
  std::int64_t tokens;
  std::int64_t queries;
  std::int64_t keys;
  std::int64_t width;
};

template <typename Headed>
Heads heads_of(const Headed& headed, const nets::Shape& x) {
  const std::size_t keys = nets::key_heads(headed);
  return {.tokens = static_cast<std::int64_t>(x.height),
          .queries = static_cast<std::int64_t>(headed.heads),
          .keys = static_cast<std::int64_t>(keys),
          .width = static_cast<std::int64_t>(x.channels / (headed.heads + 2 * keys))};
}

// (batch, tokens, channels) as (batch, tokens, heads, width).
std::string cut_into_heads(const WrittenLayer& layer, const Heads& heads) {
  return layer.add(
      "Reshape", "heads",
      {layer.read(), layer.integers("heads.shape", {0, heads.tokens, heads.queries + 2 * heads.keys,
                                                    heads.width})});
}

// Parts of `value` along `axis`, of so many each.
std::vector<std::string> split(const WrittenLayer& layer, const std::string& name,
                               const std::string& value, std::int64_t axis, const Sizes& sizes) {
  std::vector<std::string> parts;
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    parts.push_back(layer.part(name + std::to_string(i + 1)));
  }
  return layer.graph().add_several("Split", layer.part(name),
                                   {value, layer.integers(name + ".sizes", sizes)},
                                   std::move(parts), {{"axis", axis}});
}

// Each key head as many times as there are heads that it serves.
std::string repeated(const WrittenLayer& layer, const std::string& name, const std::string& value,
                     const Heads& heads) {
  if (heads.keys == heads.queries) return value;
  const std::string apart =
      layer.add("Unsqueeze", name + ".apart", {value, layer.integers(name + ".axis", {2})});
  const std::string times =
      layer.integers(name + ".times", {1, 1, heads.queries / heads.keys, 1, 1});
  const std::string expanded = layer.add("Expand", name + ".expanded", {apart, times});
  return layer.add(
      "Reshape", name + ".repeated",
      {expanded, layer.integers(name + ".shape", {0, heads.queries, heads.tokens, heads.width})});
}

// 0 for the tokens up to a token's own, and minus infinity for those behind it.
std::string causal_mask(const WrittenLayer& layer, std::size_t tokens) {
  std::vector<float> mask(tokens * tokens, 0);
  for (std::size_t i = 0; i < tokens; ++i) {
    for (std::size_t j = i + 1; j < tokens; ++j) {
      mask[i * tokens + j] = -std::numeric_limits<float>::infinity();
    }
  }
  return layer.graph().floats("causal_mask." + std::to_string(tokens), {tokens, tokens},
                              std::move(mask));
}

// Cosines and sines of a token's angles, (tokens, 1, pairs): the same for all heads.
struct Angles {
  std::string cosines;
  std::string sines;
};

Angles angles_of(const WrittenLayer& layer, const Heads& heads, float base) {
  const auto tokens = static_cast<std::size_t>(heads.tokens);
  const auto pairs = static_cast<std::size_t>(heads.width / 2);
  const RotaryAngles angles{tokens, pairs, base};
  return {
      .cosines = layer.graph().floats(layer.part("cosines"), {tokens, 1, pairs}, angles.cosines),
      .sines = layer.graph().floats(layer.part("sines"), {tokens, 1, pairs}, angles.sines)};
}

}  // namespace

std::string write(const nets::Rotary& rotary, const WrittenLayer& layer) {
  const Heads heads = heads_of(rotary, layer.x());
  const Angles angles = angles_of(layer, heads, rotary.base);
  const auto parts = split(layer, "parts", cut_into_heads(layer, heads), 2,
                           {heads.queries + heads.keys, heads.keys});
  const auto pairs = split(layer, "pairs", parts[0], 3, {heads.width / 2, heads.width / 2});
  const std::string low = layer.add("Sub", "low",
                                    {layer.add("Mul", "low_cosine", {pairs[0], angles.cosines}),
                                     layer.add("Mul", "high_sine", {pairs[1], angles.sines})});
  const std::string high = layer.add("Add", "high",
                                     {layer.add("Mul", "high_cosine", {pairs[1], angles.cosines}),
                                      layer.add("Mul", "low_sine", {pairs[0], angles.sines})});
  const std::string turned =
      layer.add("Concat", "turned", {low, high}, {{"axis", std::int64_t{3}}});
  const std::string all =
      layer.add("Concat", "all", {turned, parts[1]}, {{"axis", std::int64_t{2}}});
  const auto channels = static_cast<std::int64_t>(layer.x().channels);
  return layer.last("Reshape", {all, layer.integers("shape", {0, heads.tokens, channels})});
}

std::string write(const nets::Attention& attention, const WrittenLayer& layer) {
  const Heads heads = heads_of(attention, layer.x());
  const OnnxAttributes heads_first{{"perm", Sizes{0, 2, 1, 3}}};
  const std::string by_head =
      layer.add("Transpose", "by_head", {cut_into_heads(layer, heads)}, heads_first);
  const auto parts = split(layer, "parts", by_head, 1, {heads.queries, heads.keys, heads.keys});
  const std::string keys = layer.add("Transpose", "keys", {repeated(layer, "key", parts[1], heads)},
                                     {{"perm", Sizes{0, 1, 3, 2}}});
  const auto scale = static_cast<float>(1 / std::sqrt(static_cast<double>(heads.width)));
  std::string scores =
      layer.add("Mul", "scores",
                {layer.add("MatMul", "products", {parts[0], keys}), layer.number("scale", scale)});
  if (attention.causal) {
    scores = layer.add("Add", "masked", {scores, causal_mask(layer, layer.x().height)});
  }
  const std::string weights =
      layer.add("Softmax", "weights", {scores}, {{"axis", std::int64_t{-1}}});
  const std::string means =
      layer.add("MatMul", "means", {weights, repeated(layer, "value", parts[2], heads)});
  const std::string by_token = layer.add("Transpose", "by_token", {means}, heads_first);
  return layer.last(
      "Reshape",
      {by_token, layer.integers("shape", {0, heads.tokens, heads.queries * heads.width})});
}

}  // namespace spillway
