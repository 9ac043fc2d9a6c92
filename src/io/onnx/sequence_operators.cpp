#include "src/io/onnx/sequence_operators.h"

#include <cmath>
#include <cstdint>
#include <limits>
#include <numbers>
#include <string>
#include <utility>
#include <vector>

#include "src/numbers/rotary_angles.h"

namespace spillway {
namespace {

using Integers = std::vector<std::int64_t>;

std::int64_t signed_of(std::size_t number) { return static_cast<std::int64_t>(number); }

// Transposes (rows, columns) to (columns, rows).
std::string transposed(const WrittenLayer& layer, const std::string& matrix) {
  return layer.add("Transpose", "transposed", {matrix}, {{"perm", Integers{1, 0}}});
}

// Returns the first `count` rows of an array.
std::string first_rows(const WrittenLayer& layer, const std::string& name, const std::string& array,
                       std::size_t count) {
  return layer.add(
      "Slice", name,
      {array, layer.integers(name + ".from", {0}), layer.integers(name + ".to", {signed_of(count)}),
       layer.integers(name + ".axis", {0})});
}

// Returns x times the transposed `matrix`, plus biases if there are some.
std::string product(const WrittenLayer& layer, const std::string& matrix, std::size_t features,
                    bool bias) {
  const std::string turned = transposed(layer, matrix);
  if (!bias) return layer.last("MatMul", {layer.read(), turned});
  const std::string y = layer.add("MatMul", "product", {layer.read(), turned});
  return layer.last("Add", {y, layer.array(".bias", {features})});
}

}  // namespace

std::string write(const nets::Gelu& gelu, const WrittenLayer& layer) {
  const std::string& x = layer.read();
  std::string part;  // tanh or erf
  if (gelu.tanh) {
    const std::string square = layer.add("Mul", "square", {x, x});
    const std::string cube = layer.add("Mul", "cube", {square, x});
    const std::string less = layer.add("Mul", "less", {cube, layer.number("factor", 0.044715F)});
    const std::string sum = layer.add("Add", "sum", {x, less});
    const auto scale = static_cast<float>(std::sqrt(2 / std::numbers::pi));
    const std::string scaled = layer.add("Mul", "scaled", {sum, layer.number("scale", scale)});
    part = layer.add("Tanh", "tanh", {scaled});
  } else {
    const auto scale = static_cast<float>(1 / std::numbers::sqrt2);
    const std::string scaled = layer.add("Mul", "scaled", {x, layer.number("scale", scale)});
    part = layer.add("Erf", "erf", {scaled});
  }
  const std::string more = layer.add("Add", "more", {part, layer.number("one", 1)});
  const std::string half = layer.add("Mul", "half", {x, layer.number("a_half", 0.5F)});
  return layer.last("Mul", {half, more});
}

std::string write(const nets::Crop& crop, const WrittenLayer& layer) {
  const nets::Shape& x = layer.x();
  const nets::Shape& y = layer.node().output;
  const std::size_t above = crop.is_centred ? (x.height - y.height) / 2 : crop.offset.height;
  const std::size_t left = crop.is_centred ? (x.width - y.width) / 2 : crop.offset.width;
  return layer.last("Slice",
                    {layer.image(), layer.integers("from", {signed_of(above), signed_of(left)}),
                     layer.integers("to", {signed_of(above + y.height), signed_of(left + y.width)}),
                     layer.integers("axes", {2, 3})});
}

std::string write(const nets::Embedding& embedding, const WrittenLayer& layer) {
  return layer.last(
      "Gather", {layer.array(".weight", {embedding.vocabulary, embedding.features}), layer.read()});
}

std::string write(const nets::PositionEmbedding& embedding, const WrittenLayer& layer) {
  const nets::Shape& x = layer.x();
  const std::string table = layer.array(".weight", {embedding.rows(x), x.channels});
  const std::string rows = first_rows(layer, "rows", table, x.height);
  if (embedding.segments == 0) return layer.last("Add", {layer.read(), rows});
  const std::string types = layer.array(".segments", {embedding.segments, x.channels});
  const std::string sum = layer.add("Add", "sum", {layer.read(), rows});
  return layer.last("Add", {sum, first_rows(layer, "type", types, 1)});
}

std::string write(const nets::RmsNorm& norm, const WrittenLayer& layer) {
  const std::string& x = layer.read();
  const std::string square = layer.add("Mul", "square", {x, x});
  const std::string mean = layer.add("ReduceMean", "mean", {square}, {{"axes", Integers{-1}}});
  const std::string sum = layer.add("Add", "sum", {mean, layer.number("epsilon", norm.epsilon)});
  const std::string root = layer.add("Sqrt", "root", {sum});
  const std::string normalized = layer.add("Div", "normalized", {x, root});
  return layer.last("Mul", {normalized, layer.array(".weight", {layer.x().channels})});
}

std::string write(const nets::Swiglu& /*swiglu*/, const WrittenLayer& layer) {
  const std::int64_t half = signed_of(layer.x().channels / 2);
  const auto parts = layer.graph().add_several(
      "Split", layer.part("split"), {layer.read(), layer.integers("halves", {half, half})},
      {layer.part("gate"), layer.part("value")}, {{"axis", std::int64_t{-1}}});
  const std::string open = layer.add("Sigmoid", "open", {parts[0]});
  return layer.last("Mul", {layer.add("Mul", "silu", {parts[0], open}), parts[1]});
}

std::string write(const nets::ImageTokens& tokens, const WrittenLayer& layer) {
  const nets::Shape& x = layer.x();
  const std::int64_t channels = signed_of(x.channels);
  const std::string rows = layer.add(
      "Reshape", "rows",
      {layer.image(), layer.integers("rows.shape", {0, channels, signed_of(x.height * x.width)})});
  const OnnxAttributes turn{{"perm", Integers{0, 2, 1}}};
  if (!tokens.class_token) return layer.last("Transpose", {rows}, turn);
  const std::string pixels = layer.add("Transpose", "pixels", {rows}, turn);
  const std::string batch = layer.add("Shape", "batch", {rows}, {{"end", std::int64_t{1}}});
  const std::string shape =
      layer.add("Concat", "token.shape", {batch, layer.integers("one", {1, channels})},
                {{"axis", std::int64_t{0}}});
  const std::string first =
      layer.add("Expand", "first", {layer.array(".token", {x.channels}), shape});
  return layer.last("Concat", {first, pixels}, {{"axis", std::int64_t{1}}});
}

std::string write(const nets::FirstToken& /*first*/, const WrittenLayer& layer) {
  const std::string first = layer.add("Slice", "slice",
                                      {layer.read(), layer.integers("from", {0}),
                                       layer.integers("to", {1}), layer.integers("axis", {1})});
  return layer.last("Flatten", {first}, {{"axis", std::int64_t{1}}});
}

std::string write(const nets::VocabularyLoss& loss, const WrittenLayer& layer,
                  const std::string& table) {
  const std::string matrix = (table.empty() ? layer.node().name : table) + ".weight";
  return product(layer, layer.graph().array(matrix, {loss.vocabulary, layer.x().channels}),
                 loss.vocabulary, loss.bias);
}

std::string write_row_wise(const nets::Linear& linear, const WrittenLayer& layer) {
  return product(layer, layer.array(".weight", {linear.features, layer.x().channels}),
                 linear.features, linear.bias);
}

namespace {

using Sizes = std::vector<std::int64_t>;

// The layout of a token's channels: queries, keys, values, all heads of one width.
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

// Reshapes (batch, tokens, channels) to (batch, tokens, heads, width).
std::string cut_into_heads(const WrittenLayer& layer, const Heads& heads) {
  return layer.add(
      "Reshape", "heads",
      {layer.read(), layer.integers("heads.shape", {0, heads.tokens, heads.queries + 2 * heads.keys,
                                                    heads.width})});
}

// Splits `value` along `axis` into parts of these sizes.
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

// Repeats each key head for all the query heads that it serves.
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

// Returns 0 for each token and those before it, minus infinity for later ones.
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
