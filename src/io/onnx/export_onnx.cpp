#include "src/io/onnx/export_onnx.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <numbers>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "src/io/onnx/graph_writer.h"
#include "src/io/onnx/operator_attributes.h"
#include "src/ops/rotary_angles.h"

namespace spillway {
namespace {

/// Layers that take several of ONNX's operators, version 17. Each function writes one layer and
/// returns the name of its output. Sequences are (batch, tokens, channels).

[[nodiscard]] std::string write(const nets::Gelu& gelu, const WrittenLayer& layer);
[[nodiscard]] std::string write(const nets::Crop& crop, const WrittenLayer& layer);
[[nodiscard]] std::string write(const nets::Embedding& embedding, const WrittenLayer& layer);
[[nodiscard]] std::string write(const nets::PositionEmbedding& embedding,
                                const WrittenLayer& layer);
[[nodiscard]] std::string write(const nets::RmsNorm& norm, const WrittenLayer& layer);
[[nodiscard]] std::string write(const nets::Swiglu& swiglu, const WrittenLayer& layer);
[[nodiscard]] std::string write(const nets::Rotary& rotary, const WrittenLayer& layer);
[[nodiscard]] std::string write(const nets::Attention& attention, const WrittenLayer& layer);
[[nodiscard]] std::string write(const nets::ImageTokens& tokens, const WrittenLayer& layer);
[[nodiscard]] std::string write(const nets::FirstToken& first, const WrittenLayer& layer);
/// Returns the logits. `table` is the layer that owns the embedding table; empty: this layer's own.
[[nodiscard]] std::string write(const nets::VocabularyLoss& loss, const WrittenLayer& layer,
                                const std::string& table);

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

// Writes a linear layer that is applied to each token.
std::string write_row_wise(const nets::Linear& linear, const WrittenLayer& layer) {
  return product(layer, layer.array(".weight", {linear.features, layer.x().channels}),
                 linear.features, linear.bias);
}

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

constexpr const char* kLogits = "logits";

// Writes each kind of layer as operators.
class LayerWriting {
 public:
  LayerWriting(const WrittenLayer& layer, const nets::Network& network)
      : layer_{layer}, network_{network} {}

  LayerValue operator()(const nets::Convolution& own) const {
    return image(with_weights(
        layer_.image(),
        {own.channels, layer_.x().channels / own.groups, own.kernel.height, own.kernel.width},
        own.bias));
  }
  LayerValue operator()(const nets::TransposedConvolution& own) const {
    return image(with_weights(
        layer_.image(),
        {layer_.x().channels, own.channels / own.groups, own.kernel.height, own.kernel.width},
        own.bias));
  }
  LayerValue operator()(const nets::Linear& own) const {
    if (layer_.x().form == nets::Form::kSequence) return image(write_row_wise(own, layer_));
    return flat(with_weights(layer_.flat(), {own.features, layer_.x().elements()}, own.bias));
  }
  LayerValue operator()(const nets::BatchNorm& /*own*/) const {
    std::vector<std::string> inputs{layer_.image()};
    for (const char* const suffix : {".weight", ".bias", ".running_mean", ".running_var"}) {
      inputs.push_back(layer_.array(suffix, {layer_.x().channels}));
    }
    return image(own_operator(std::move(inputs)));
  }
  LayerValue operator()(const nets::LayerNorm& /*own*/) const {
    const std::vector<std::size_t> shape{layer_.x().channels};
    return image(own_operator(
        {layer_.read(), layer_.array(".weight", shape), layer_.array(".bias", shape)}));
  }

  LayerValue operator()(const nets::Pool& /*own*/) const { return of_image(); }
  LayerValue operator()(const nets::GlobalAveragePool& /*own*/) const { return of_image(); }
  LayerValue operator()(const nets::LocalResponseNorm& /*own*/) const { return of_image(); }
  LayerValue operator()(const nets::Add& /*own*/) const { return of_several(); }
  LayerValue operator()(const nets::Concat& /*own*/) const { return of_several(); }
  LayerValue operator()(const nets::Flatten& /*own*/) const {
    return flat(own_operator({layer_.read()}));
  }
  LayerValue operator()(const nets::Dropout& /*own*/) const { return layer_.inputs().front(); }
  LayerValue operator()(const nets::Relu& /*own*/) const {
    return as_read(own_operator({layer_.read()}));
  }
  LayerValue operator()(const nets::Gelu& own) const {
    return as_read(spillway::write(own, layer_));
  }
  LayerValue operator()(const nets::FirstToken& own) const {
    return flat(spillway::write(own, layer_));
  }

  LayerValue operator()(const nets::SoftmaxCrossEntropy& /*own*/) const {
    const bool is_vector = layer_.x().height * layer_.x().width == 1;
    return is_vector ? flat(layer_.flat()) : image(layer_.image());
  }
  LayerValue operator()(const nets::VocabularyLoss& own) const {
    const std::optional<nets::NodeId> table = nets::table_of(layer_.node());
    return image(spillway::write(own, layer_, table ? network_[*table].name : std::string{}));
  }
  template <typename Composed>
  LayerValue operator()(const Composed& own) const {
    return image(spillway::write(own, layer_));
  }

 private:
  [[nodiscard]] LayerValue value(std::string name, bool is_flat) const {
    return {.name = std::move(name), .shape = layer_.node().output, .is_flat = is_flat};
  }
  [[nodiscard]] LayerValue flat(std::string name) const { return value(std::move(name), true); }
  [[nodiscard]] LayerValue image(std::string name) const { return value(std::move(name), false); }
  [[nodiscard]] LayerValue as_read(std::string name) const {
    return value(std::move(name), layer_.inputs().front().is_flat);
  }

  [[nodiscard]] std::string own_operator(std::vector<std::string> inputs) const {
    OnnxOperator own = operator_of(layer_.node().layer).value();
    return layer_.last(own.type, std::move(inputs), std::move(own.attributes));
  }
  [[nodiscard]] std::string with_weights(std::string x, std::vector<std::size_t> shape,
                                         bool bias) const {
    std::vector<std::string> inputs{std::move(x), layer_.array(".weight", std::move(shape))};
    if (bias) inputs.push_back(layer_.array(".bias", {layer_.node().output.channels}));
    return own_operator(std::move(inputs));
  }
  [[nodiscard]] LayerValue of_image() const { return image(own_operator({layer_.image()})); }
  [[nodiscard]] LayerValue of_several() const {
    const bool are_flat = std::ranges::all_of(layer_.inputs(), &LayerValue::is_flat);
    const bool are_images = layer_.x().form == nets::Form::kImage;
    std::vector<std::string> inputs;
    for (std::size_t i = 0; i < layer_.inputs().size(); ++i) {
      inputs.push_back(are_flat || !are_images ? layer_.read(i) : layer_.image(i));
    }
    return value(own_operator(std::move(inputs)), are_flat);
  }

  const WrittenLayer& layer_;
  const nets::Network& network_;
};

OnnxValue input_of(const nets::Network& network) {
  const nets::Shape& image = network.input();
  if (network.reads_text()) {
    return {.name = "tokens", .is_float = false, .shape = {std::nullopt, image.height}};
  }
  return {.name = "image", .shape = {std::nullopt, image.channels, image.height, image.width}};
}

OnnxValue output_of(const LayerValue& logits) {
  OnnxValue output{.name = kLogits, .shape = {std::nullopt}};
  const nets::Shape& shape = logits.shape;
  if (shape.form == nets::Form::kSequence) {
    output.shape.insert(output.shape.end(), {shape.height, shape.channels});
  } else if (logits.is_flat) {
    output.shape.insert(output.shape.end(), {shape.channels});
  } else {
    output.shape.insert(output.shape.end(), {shape.channels, shape.height, shape.width});
  }
  return output;
}

}  // namespace

OnnxModel export_onnx(const nets::Network& network, const ArraySource& arrays) {
  const nets::Network predicting = nets::without_auxiliary_heads(network);
  OnnxModel model{.name = network.name, .producer = std::string{kOnnxProducer}};
  model.inputs.push_back(input_of(predicting));
  GraphWriter graph{model, arrays};
  std::vector<LayerValue> values{{.name = model.inputs.front().name, .shape = predicting.input()}};
  for (std::size_t i = 1; i < predicting.nodes.size(); ++i) {
    const nets::Node& node = predicting.nodes[i];
    std::vector<LayerValue> inputs;
    for (const nets::NodeId input : nets::read_by(node)) {
      inputs.push_back(values[static_cast<std::size_t>(input)]);
    }
    const WrittenLayer layer{graph, node, std::move(inputs)};
    values.push_back(std::visit(LayerWriting{layer, predicting}, node.layer));
  }
  for (OnnxNode& node : model.nodes) {
    std::ranges::replace(node.inputs, values.back().name, kLogits);
    std::ranges::replace(node.outputs, values.back().name, kLogits);
  }
  model.outputs.push_back(output_of(values.back()));
  return model;
}

}  // namespace spillway
