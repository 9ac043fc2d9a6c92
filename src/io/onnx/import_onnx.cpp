#include "src/io/onnx/import_onnx.h"

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <sstream>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "nets/builder.h"
#include "nets/layer_kinds.h"
#include "nets/shape.h"
#include "nets/text/network_file.h"
#include "src/io/onnx/graph_reader.h"
#include "src/io/onnx/onnx_model.h"
#include "src/io/onnx/operator_attributes.h"
#include "src/io/safetensors.h"
#include "um/error.h"
#include "um/text/wording.h"

namespace spillway {
namespace {

constexpr std::size_t kLongestOnnxName = 180;  // layer names have up to 200, and some get a number

bool is_of_names(char c) {
  constexpr std::string_view kOthers = "_-.:,/+";
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
         kOthers.find(c) != std::string_view::npos;
}

std::string without_suffix(std::string name, const std::string& suffix) {
  if (name.size() > suffix.size() && name.ends_with(suffix)) {
    name.resize(name.size() - suffix.size());
  }
  return name;
}

// Returns `name` with '_' for letters that layer names cannot have, shortened if needed.
std::string as_layer_name(const std::string& name) {
  std::string text = name.substr(0, kLongestOnnxName);
  std::ranges::replace_if(
      text, [](char c) { return !is_of_names(c); }, '_');
  text.erase(0, text.find_first_not_of('/'));
  return text.empty() ? "layer" : text;
}

// Chooses unique names for layers from the names in the file.
class LayerNames {
 public:
  // Returns the name of the weights, "conv1" for "conv1.weight", or else that of the node,
  // "layer1/relu" for "/layer1/relu/Relu". Replaces letters that layer names cannot have, and
  // makes the name unique.
  [[nodiscard]] std::string name_for(const OnnxNode& node, const std::string& weights = {});
  // Returns `name` with valid letters, made unique.
  [[nodiscard]] std::string unique(const std::string& name);

 private:
  um::FreeNames names_{{"image", "labels", "loss"}};
};

std::string LayerNames::name_for(const OnnxNode& node, const std::string& weights) {
  std::string name = without_suffix(weights, ".weight");
  if (name == weights) {  // no layer has this name
    name = node.name.empty() && !node.outputs.empty() ? node.outputs[0] : node.name;
    name = without_suffix(name, "/" + node.type);
  }
  return unique(name);
}

std::string LayerNames::unique(const std::string& name) { return names_.take(as_layer_name(name)); }

// The arrays of imported layers.
class ImportedArrays {
 public:
  // Stores input `index` of `node`, weights of this shape, as the array `name`.
  // Throws: um::Error that names the node when the shape differs, a number is not finite, or an
  // earlier layer has the same matrix. (Vectors may be shared: exporters write equal ones once.)
  void take(const GraphReader& graph, const OnnxNode& node, std::size_t index,
            const std::string& name, const std::vector<std::size_t>& shape);
  // Transposes the array `name` from (rows, columns) to (columns, rows). Requires: it exists.
  void transpose(const std::string& name, std::size_t columns);
  // Returns all arrays by name. No other call may follow.
  [[nodiscard]] std::map<std::string, std::vector<float>> release() { return std::move(arrays_); }

 private:
  std::map<std::string, std::vector<float>> arrays_;
  std::set<const OnnxTensor*> matrices_;  // of layers so far; of two dimensions or more
};

// The layers and arrays of a graph.
struct ReadGraph {
  nets::Network network;
  std::map<std::string, std::vector<float>> arrays;  // by name: "conv1.weight"
};

// Converts a graph's nodes to layers, one after the other.
class GraphImport {
 public:
  // `graph` must outlive the import. Throws: as GraphReader::image() does.
  GraphImport(const GraphReader& graph, const std::string& name);

  // Imports the graph; no other call may follow. Throws: um::Error as import_onnx() does,
  // without the file's name.
  [[nodiscard]] ReadGraph run();

 private:
  // A value of the graph and the layer that computes it.
  struct Value {
    nets::NodeId node;
    bool is_flat = false;  // (batch, C H W)
    std::string flattened_by = {};
  };
  using Read = void (GraphImport::*)(const OnnxNode& node);
  [[nodiscard]] static const std::map<std::string, Read>& readers();

  void read(const OnnxNode& node);
  template <typename L>
  void read_convolution(const OnnxNode& node);
  void read_batch_norm(const OnnxNode& node);
  void read_gemm(const OnnxNode& node);
  void read_mat_mul(const OnnxNode& node);
  void read_plain(const OnnxNode& node);
  void read_dropout(const OnnxNode& node);
  void read_pool(const OnnxNode& node);
  void read_mean(const OnnxNode& node);
  void read_flatten(const OnnxNode& node);
  void read_reshape(const OnnxNode& node);
  void read_squeeze(const OnnxNode& node);
  void read_identity(const OnnxNode& node);
  void read_softmax(const OnnxNode& node);

  // Adds a linear layer with weights (out, in), or (in, out) with `is_in_out`.
  void add_linear(const OnnxNode& node, bool is_in_out, const std::string& bias,
                  const std::string& output);
  nets::NodeId add(const OnnxNode& node, const std::string& name, nets::Layer layer,
                   std::vector<nets::NodeId> inputs, bool is_flat = false);
  [[nodiscard]] Value& input(const OnnxNode& node, std::size_t index = 0);
  // Returns the node of an input, after a Flatten layer if the graph flattens it.
  nets::NodeId unflattened(const OnnxNode& node, std::size_t index);
  void flatten(Value& value);
  [[nodiscard]] const nets::Shape& shape(const Value& value) const {
    return builder_.shape(value.node);
  }

  const GraphReader& graph_;
  nets::Builder builder_;
  LayerNames names_;
  std::map<std::string, Value> values_;
  std::set<const OnnxNode*> done_;  // before their turn
  ImportedArrays arrays_;
};

void ImportedArrays::take(const GraphReader& graph, const OnnxNode& node, std::size_t index,
                          const std::string& name, const std::vector<std::size_t>& shape) {
  const OnnxTensor& tensor = graph.weights(node, index);
  if (tensor.shape.size() > 1 && !matrices_.insert(&tensor).second) {
    throw node_error(node, "shares its weights with an earlier node, which layers do not");
  }
  if (tensor.shape != shape) {
    throw node_error(node, "has an array '" + tensor.name + "' of " + shape_text(tensor.shape) +
                               ", but needs " + shape_text(shape));
  }
  if (!is_finite(tensor.floats)) {
    throw node_error(node, "has an array '" + tensor.name + "' that " + kNotFinite);
  }
  arrays_[name] = tensor.floats;
}

void ImportedArrays::transpose(const std::string& name, std::size_t columns) {
  std::vector<float>& matrix = arrays_.at(name);
  std::vector<float> turned;
  turned.reserve(matrix.size());
  for (std::size_t column = 0; column < columns; ++column) {
    for (std::size_t at = column; at < matrix.size(); at += columns) turned.push_back(matrix[at]);
  }
  matrix = std::move(turned);
}

// How the graph holds a value: (batch, C H W) or (batch, C, H, W).
enum class ValueForm : std::uint8_t { kVector, kImage };

constexpr std::int64_t kOneAxisSoftmax = 13;  // since this version; default: the last

bool is_side(std::int64_t side, std::size_t own) {
  return side == -1 || (side > 0 && static_cast<std::size_t>(side) == own);
}

// Returns the form of the output of `node`, a Reshape of a batch of values `shape`. Nothing if
// the output is neither a vector per image nor the image itself, or the target is not a constant.
std::optional<ValueForm> reshaped_form(const GraphReader& graph, const OnnxNode& node,
                                       const nets::Shape& shape) {
  const auto target = has_input(node, 1) ? graph.integers(node.inputs[1]) : std::nullopt;
  if (!target || target->empty() || std::ranges::count(*target, -1) > 1) return {};
  const std::int64_t first = target->front();
  const bool keeps_zeros = integer_attribute(node, "allowzero", 0) != 0;  // 0: an empty side
  const auto batch = static_cast<std::int64_t>(graph.input().shape.front().value_or(0));
  const bool keeps_batch =
      first == -1 || (first == 0 && !keeps_zeros) || (first == batch && batch > 0);
  if (!keeps_batch) return {};
  if (target->size() == 2 && is_side(target->at(1), shape.elements())) return ValueForm::kVector;
  const bool is_image = target->size() == 4 && is_side(target->at(1), shape.channels) &&
                        is_side(target->at(2), shape.height) && is_side(target->at(3), shape.width);
  return is_image ? std::optional{ValueForm::kImage} : std::nullopt;
}

// Returns whether `axes` of (batch, C, H, W) are H and W; negative axes count from the end.
bool are_height_and_width(std::vector<std::int64_t> axes) {
  for (std::int64_t& axis : axes) axis += axis < 0 ? 4 : 0;
  std::ranges::sort(axes);
  return axes == std::vector<std::int64_t>{2, 3};
}

// Returns whether `node`, a Softmax or LogSoftmax of ONNX's operators of version `operators`,
// covers exactly the channels of `shape` at each place. Before version 13 it covers its axis and
// all after it.
bool is_over_channels(const OnnxNode& node, std::int64_t operators, ValueForm form,
                      const nets::Shape& shape) {
  const bool is_one_axis = operators >= kOneAxisSoftmax;
  const std::int64_t dimensions = form == ValueForm::kVector ? 2 : 4;
  const std::int64_t axis = integer_attribute(node, "axis", is_one_axis ? -1 : 1);
  if (axis != 1 && axis + dimensions != 1) return false;
  return is_one_axis || form == ValueForm::kVector || shape.height * shape.width == 1;
}

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
  static_cast<void>(graph_.weights(node, 1));  // throws if there are none
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
  static_cast<void>(layer_of(known));  // throws for other attributes
  const bool is_in_out = integer_attribute(node, "transB", 0) == 0;
  add_linear(node, is_in_out, has_input(node, 2) ? node.inputs[2] : "", node.outputs[0]);
}

// Includes the biases that its only reader adds.
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
  if (is_concat && count == 1) return read_identity(node);  // DenseNet's first block has one
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

// Skips pools that change nothing: PyTorch exports adaptive pools as such.
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
  static_cast<void>(layer_of(node));  // throws for other axes
  Value value = input(node);
  if (!value.is_flat) value.flattened_by = node.name;
  value.is_flat = true;
  values_.insert_or_assign(node.outputs[0], value);
}

// Reshapes to a vector per image, or back to the image.
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

// Returns the number of features or channels of a layer with weights; null for other layers.
struct Features {
  template <typename L>
  std::size_t* operator()(L& layer) const {
    if constexpr (requires { layer.features; }) {
      return &layer.features;
    } else if constexpr (requires { layer.channels; }) {
      return &layer.channels;
    } else {
      return nullptr;
    }
  }
};

bool mixes_channels(const nets::Layer& layer) {
  return std::holds_alternative<nets::Add>(layer) || std::holds_alternative<nets::Concat>(layer) ||
         std::holds_alternative<nets::Flatten>(layer);
}

// Returns the name of the layer that outputs the classes; later layers keep them separate.
std::string head_of(nets::Network& network) {
  auto at = static_cast<std::size_t>(network.nodes.back().inputs[0]);
  while (at > 0) {
    nets::Node& node = network.nodes[at];
    if (std::visit(Features{}, node.layer) != nullptr) return node.name;
    const bool passes_on =
        !mixes_channels(node.layer) || network[node.inputs[0]].output == node.output;
    if (!passes_on || node.inputs.size() != 1) break;
    at = static_cast<std::size_t>(node.inputs[0]);
  }
  return "";
}

// Returns the same layers for another image size and, by the head, another number of classes.
nets::Network rebuilt(const nets::Network& network, const std::string& head,
                      const nets::Shape& image, std::size_t classes) {
  nets::Builder net{network.name, image};
  for (std::size_t i = 1; i + 1 < network.nodes.size(); ++i) {
    const nets::Node& node = network.nodes[i];
    nets::Layer layer = node.layer;
    if (node.name == head) *std::visit(Features{}, layer) = classes;
    net.add(node.name, layer, node.inputs);
  }
  nets::Network made = net.build(network.nodes.back().inputs[0]);
  if (made.classes() == classes) return made;
  throw um::Error{"network " + network.name + " tells " + std::to_string(made.classes()) +
                  " classes apart, which --classes cannot change"};
}

ImportedNetwork imported(OnnxModel model, const std::string& file) {
  const bool is_ours = model.producer == kOnnxProducer;
  const std::string name =
      as_layer_name(is_ours ? model.name : std::filesystem::path{file}.stem().string());
  ReadGraph read = [&] {
    const GraphReader graph{std::move(model)};
    return GraphImport{graph, name}.run();
  }();
  // Throws unless checkpoints can hold the network.
  std::istringstream text{nets::to_text(read.network)};
  static_cast<void>(nets::build_network(nets::read_network(text, file)));
  const std::string head = head_of(read.network);
  nets::CatalogueEntry entry{.name = read.network.name,
                             .description = "a network of an ONNX file",
                             .image = read.network.input(),
                             .classes = read.network.classes(),
                             .build = {}};
  entry.build = [network = std::move(read.network), head, file](const nets::Shape& image,
                                                                std::size_t classes) {
    try {
      return rebuilt(network, head, image, classes);
    } catch (const um::Error& error) {
      throw um::Error{file + ": " + error.what()};
    }
  };
  return {.file = file, .entry = std::move(entry), .head = head, .arrays = std::move(read.arrays)};
}

}  // namespace

ImportedNetwork import_onnx(OnnxModel model, const std::string& file) {
  try {
    return imported(std::move(model), file);
  } catch (const um::Error& error) {
    const std::string sentence = error.what();
    throw um::Error{sentence.starts_with(file) ? sentence : file + ": " + sentence};
  }
}

void fill_array(const ImportedNetwork& network, const std::string& name, std::span<float> numbers,
                bool has_new_head) {
  const auto found = network.arrays.find(name);
  if (found == network.arrays.end()) {
    throw um::Error{network.file + " has no array " + name + ", which its network needs"};
  }
  if (found->second.size() == numbers.size()) {
    std::ranges::copy(found->second, numbers.begin());
    return;
  }
  const std::string layer = name.substr(0, name.rfind('.'));
  const bool is_of_head = layer == network.head;
  if (is_of_head && has_new_head) return;
  throw um::Error{"layer " + layer + " of " + network.file + " has " +
                  std::to_string(found->second.size()) + " numbers in " + name + ", but needs " +
                  std::to_string(numbers.size()) +
                  (is_of_head ? " for as many classes; --new-head draws it anew"
                              : " for this --image-size; leave that out")};
}

}  // namespace spillway
