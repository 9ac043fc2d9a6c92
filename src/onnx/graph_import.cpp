#include "src/onnx/graph_import.h"

#include <algorithm>
#include <concepts>
#include <optional>
#include <utility>
#include <variant>

#include "nets/layer_kinds.h"
#include "nets/limits.h"
#include "src/files/safetensors.h"
#include "src/onnx/node_error.h"
#include "src/onnx/node_padding.h"
#include "src/onnx/operator_attributes.h"
#include "src/onnx/value_forms.h"
#include "um/error.h"

namespace spillway {

GraphImport::GraphImport(const GraphReader& graph, const std::string& name)
    : graph_{graph}, builder_{name, graph.image()} {
  values_.emplace(graph.input().name,
                  Value{.node = builder_.input(), .is_flat = graph.input().shape.size() == 2});
}

ReadGraph GraphImport::run() {
  for (const OnnxNode& node : graph_.model().nodes) {
    if (graph_.is_needed(node) && !done_.contains(&node)) read(node);
  }
  const auto logits = values_.find(graph_.output());
  if (logits == values_.end() || logits->second.node == builder_.input()) {
    throw um::Error{"no node makes the network's output '" + graph_.output() + "'"};
  }
  flatten(logits->second);
  nets::Network network = builder_.build(logits->second.node);
  return {.network = std::move(network), .arrays = arrays_.release()};
}

const std::map<std::string, GraphImport::Read>& GraphImport::readers() {
  static const std::map<std::string, Read> all{
      {"Add", &GraphImport::read_plain},
      {"AveragePool", &GraphImport::read_pool},
      {"BatchNormalization", &GraphImport::read_batch_norm},
      {"Concat", &GraphImport::read_plain},
      {"Conv", &GraphImport::read_convolution<nets::Convolution>},
      {"ConvTranspose", &GraphImport::read_convolution<nets::TransposedConvolution>},
      {"Dropout", &GraphImport::read_dropout},
      {"Flatten", &GraphImport::read_flatten},
      {"Gemm", &GraphImport::read_gemm},
      {"GlobalAveragePool", &GraphImport::read_plain},
      {"Identity", &GraphImport::read_identity},
      {"LRN", &GraphImport::read_plain},
      {"LogSoftmax", &GraphImport::read_softmax},
      {"MatMul", &GraphImport::read_mat_mul},
      {"MaxPool", &GraphImport::read_pool},
      {"ReduceMean", &GraphImport::read_mean},
      {"Relu", &GraphImport::read_plain},
      {"Reshape", &GraphImport::read_reshape},
      {"Softmax", &GraphImport::read_softmax},
      {"Squeeze", &GraphImport::read_squeeze}};
  return all;
}

void GraphImport::read(const OnnxNode& node) {
  if (node.outputs.empty() || graph_.constant(node.outputs[0]) != nullptr) return;
  const auto reader = readers().find(node.type);
  if (reader != readers().end()) return (this->*reader->second)(node);
  std::string known;
  for (const auto& [type, function] : readers()) known += (known.empty() ? "" : ", ") + type;
  throw node_error(node, "is none that layers do; those are " + known);
}

template <typename L>
void GraphImport::read_convolution(const OnnxNode& node) {
  const std::vector<std::size_t> shape = graph_.weights(node, 1).shape;
  const nets::NodeId x = unflattened(node, 0);
  const std::size_t inputs = builder_.shape(x).channels;
  if (shape.size() != 4 || std::ranges::max(shape) > nets::kLargestWidth) {
    throw node_error(node, "does not convolve images: its weights are " + shape_text(shape));
  }
  const nets::Extent kernel{.height = shape[2], .width = shape[3]};
  L layer = std::get<L>(layer_of(with_even_padding(node, builder_.shape(x), kernel)).value());
  constexpr bool kIsAdjoint = std::same_as<L, nets::TransposedConvolution>;
  layer.channels = kIsAdjoint ? shape[1] * layer.groups : shape[0];
  if (!node.attributes.contains("kernel_shape")) layer.kernel = kernel;
  layer.bias = has_input(node, 2);
  const std::string name = names_.name_for(node, node.inputs[1]);
  add(node, name, layer, {x});
  const std::size_t first = kIsAdjoint ? inputs : layer.channels;
  const std::size_t second = (kIsAdjoint ? layer.channels : inputs) / layer.groups;
  arrays_.take(graph_, node, 1, name + ".weight",
               {first, second, layer.kernel.height, layer.kernel.width});
  if (layer.bias) arrays_.take(graph_, node, 2, name + ".bias", {layer.channels});
}

void GraphImport::read_batch_norm(const OnnxNode& node) {
  static_cast<void>(graph_.weights(node, 1));  // throws where there are none
  const nets::NodeId x = unflattened(node, 0);
  const std::string name = names_.name_for(node, node.inputs[1]);
  add(node, name, layer_of(node).value(), {x});
  const std::vector<std::size_t> shape{builder_.shape(x).channels};
  arrays_.take(graph_, node, 1, name + ".weight", shape);
  arrays_.take(graph_, node, 2, name + ".bias", shape);
  arrays_.take(graph_, node, 3, name + ".running_mean", shape);
  arrays_.take(graph_, node, 4, name + ".running_var", shape);
}

void GraphImport::read_gemm(const OnnxNode& node) {
  OnnxNode known = node;
  known.attributes.erase("transB");
  static_cast<void>(layer_of(known));  // refuses others
  const bool is_in_out = integer_attribute(node, "transB", 0) == 0;
  add_linear(node, is_in_out, has_input(node, 2) ? node.inputs[2] : "", node.outputs[0]);
}

// With the biases that its only reader adds.
void GraphImport::read_mat_mul(const OnnxNode& node) {
  const OnnxNode* const sum = graph_.only_reader(node.outputs[0]);
  if (sum == nullptr || sum->type != "Add" || sum->inputs.size() != 2 || sum->outputs.empty()) {
    return add_linear(node, true, "", node.outputs[0]);
  }
  const std::string& bias = sum->inputs[sum->inputs[0] == node.outputs[0] ? 1 : 0];
  if (graph_.constant(bias) == nullptr) return add_linear(node, true, "", node.outputs[0]);
  done_.insert(sum);
  add_linear(node, true, bias, sum->outputs[0]);
}

void GraphImport::add_linear(const OnnxNode& node, bool is_in_out, const std::string& bias,
                             const std::string& output) {
  const Value& x = input(node);
  const std::size_t inputs = shape(x).elements();
  const OnnxTensor& matrix = graph_.weights(node, 1);
  if (!x.is_flat || matrix.shape.size() != 2) {
    throw node_error(node, "is no product of a vector of each image with a matrix of weights");
  }
  const std::size_t features = matrix.shape[is_in_out ? 1 : 0];
  const std::string name = names_.name_for(node, node.inputs[1]);
  const nets::NodeId y =
      builder_.add(name, nets::Linear{.features = features, .bias = !bias.empty()}, {x.node});
  arrays_.take(graph_, node, 1, name + ".weight",
               is_in_out ? std::vector{inputs, features} : std::vector{features, inputs});
  if (is_in_out) arrays_.transpose(name + ".weight", features);
  if (!bias.empty()) {
    OnnxNode with_bias = node;
    with_bias.inputs.resize(2);
    with_bias.inputs.push_back(bias);
    arrays_.take(graph_, with_bias, 2, name + ".bias", {features});
  }
  values_.insert_or_assign(output, Value{.node = y, .is_flat = true});
}

void GraphImport::read_plain(const OnnxNode& node) {
  const nets::Layer layer = layer_of(node).value();
  const bool is_by_element =
      std::holds_alternative<nets::Relu>(layer) || std::holds_alternative<nets::Dropout>(layer);
  const std::size_t count = is_by_element ? 1 : node.inputs.size();
  const bool is_concat = std::holds_alternative<nets::Concat>(layer);
  if (is_concat && count == 1) return read_identity(node);  // DenseNet's first
  const nets::InputCount known = nets::input_count(layer);
  if (count < known.min || count > known.max) {
    throw node_error(node, "reads " + std::to_string(count) + " values, which no layer does");
  }
  std::vector<nets::NodeId> inputs;
  bool is_flat = false;
  for (std::size_t i = 0; i < count; ++i) {
    const bool is_flat_here = input(node, i).is_flat;
    if (i > 0 && is_flat_here != is_flat) {
      throw node_error(node, "reads vectors and images together");
    }
    is_flat = is_flat_here;
    inputs.push_back(is_by_element ? input(node, i).node : unflattened(node, i));
  }
  const std::string flattened_by = input(node).flattened_by;
  add(node, names_.name_for(node), layer, std::move(inputs), is_flat);
  values_.at(node.outputs[0]).flattened_by = flattened_by;
}

void GraphImport::read_dropout(const OnnxNode& node) {
  OnnxNode known = node;
  if (has_input(node, 1)) {
    const std::vector<float>& ratio = graph_.weights(node, 1).floats;
    if (ratio.size() == 1) known.attributes["ratio"] = ratio[0];
  }
  known.inputs.resize(1);
  read_plain(known);
}

// One that makes what it reads is left out: PyTorch writes adaptive pools so.
void GraphImport::read_pool(const OnnxNode& node) {
  if (!node.attributes.contains("kernel_shape")) throw node_error(node, "has no kernel_shape");
  const OnnxNode even = with_even_padding(node, builder_.shape(unflattened(node, 0)));
  const auto pool = std::get<nets::Pool>(layer_of(even).value());
  if (pool.kernel == nets::square(1) && pool.stride == nets::square(1) &&
      pool.padding == nets::square(0)) {
    return read_identity(even);
  }
  read_plain(even);
}

void GraphImport::read_mean(const OnnxNode& node) {
  if (!are_height_and_width(graph_.axes(node)) || input(node).is_flat) {
    throw node_error(node, "averages over something else than height and width");
  }
  const nets::NodeId x = input(node).node;
  add(node, names_.name_for(node), nets::GlobalAveragePool{}, {x},
      integer_attribute(node, "keepdims", 1) == 0);
}

void GraphImport::read_flatten(const OnnxNode& node) {
  static_cast<void>(layer_of(node));  // refuses other axes
  Value value = input(node);
  if (!value.is_flat) value.flattened_by = node.name;
  value.is_flat = true;
  values_.insert_or_assign(node.outputs[0], value);
}

// To a vector of each image, or to the image that it was.
void GraphImport::read_reshape(const OnnxNode& node) {
  Value value = input(node);
  const std::optional<ValueForm> form = reshaped_form(graph_, node, shape(value));
  if (!form) throw node_error(node, "makes something else than one vector of each image");
  if (*form == ValueForm::kVector && !value.is_flat) value.flattened_by = node.name;
  value.is_flat = *form == ValueForm::kVector;
  values_.insert_or_assign(node.outputs[0], value);
}

void GraphImport::read_squeeze(const OnnxNode& node) {
  Value value = input(node);
  const bool is_vector = shape(value).height * shape(value).width == 1;
  if (!is_vector || value.is_flat || !are_height_and_width(graph_.axes(node))) {
    throw node_error(node, "makes something else than one vector of each image");
  }
  value.is_flat = true;
  values_.insert_or_assign(node.outputs[0], value);
}

void GraphImport::read_identity(const OnnxNode& node) {
  values_.insert_or_assign(node.outputs[0], Value{input(node)});
}

void GraphImport::read_softmax(const OnnxNode& node) {
  if (node.outputs[0] != graph_.output()) {
    throw node_error(node, "is not at the end of the network, where it is part of the loss");
  }
  const Value& value = input(node);
  const ValueForm form = value.is_flat ? ValueForm::kVector : ValueForm::kImage;
  if (!is_over_channels(node, graph_.model().operators, form, shape(value))) {
    throw node_error(node, "is not over the classes");
  }
  read_identity(node);
}

nets::NodeId GraphImport::add(const OnnxNode& node, const std::string& name, nets::Layer layer,
                              std::vector<nets::NodeId> inputs, bool is_flat) {
  const nets::NodeId made = builder_.add(name, layer, std::move(inputs));
  values_.insert_or_assign(node.outputs[0], Value{.node = made, .is_flat = is_flat});
  return made;
}

GraphImport::Value& GraphImport::input(const OnnxNode& node, std::size_t index) {
  if (!has_input(node, index)) throw node_error(node, "lacks an input");
  const auto found = values_.find(node.inputs[index]);
  if (found != values_.end()) return found->second;
  const bool is_constant = graph_.constant(node.inputs[index]) != nullptr;
  throw node_error(node, "reads '" + node.inputs[index] + "', " +
                             (is_constant ? "a constant, where layers read what others make"
                                          : "which no node before it makes"));
}

nets::NodeId GraphImport::unflattened(const OnnxNode& node, std::size_t index) {
  Value& value = input(node, index);
  flatten(value);
  return value.node;
}

void GraphImport::flatten(Value& value) {
  if (!value.is_flat || shape(value).height * shape(value).width == 1) return;
  value.node = builder_.add(names_.unique(value.flattened_by), nets::Flatten{}, {value.node});
}

}  // namespace spillway
