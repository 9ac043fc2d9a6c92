#include "src/io/onnx/export_onnx.h"

#include <algorithm>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "src/io/onnx/graph_writer.h"
#include "src/io/onnx/operator_attributes.h"
#include "src/io/onnx/sequence_operators.h"
#include "um/error.h"

namespace spillway {
namespace {

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

void rename(OnnxModel& model, const std::string& value, const std::string& name) {
  for (OnnxNode& node : model.nodes) {
    std::ranges::replace(node.inputs, value, name);
    std::ranges::replace(node.outputs, value, name);
  }
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
  rename(model, values.back().name, kLogits);
  model.outputs.push_back(output_of(values.back()));
  return model;
}

}  // namespace spillway
