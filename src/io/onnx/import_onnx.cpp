#include "src/io/onnx/import_onnx.h"

#include <algorithm>
#include <filesystem>
#include <memory>
#include <optional>
#include <sstream>
#include <string_view>
#include <utility>
#include <variant>

#include "nets/builder.h"
#include "nets/text/network_file.h"
#include "src/io/onnx/graph_import.h"
#include "src/io/onnx/graph_reader.h"
#include "um/error.h"

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

}  // namespace

std::string as_layer_name(const std::string& name) {
  std::string text = name.substr(0, kLongestOnnxName);
  std::ranges::replace_if(
      text, [](char c) { return !is_of_names(c); }, '_');
  text.erase(0, text.find_first_not_of('/'));
  return text.empty() ? "layer" : text;
}

std::string LayerNames::name_for(const OnnxNode& node, const std::string& weights) {
  std::string name = without_suffix(weights, ".weight");
  if (name == weights) {  // no layer has this name
    name = node.name.empty() && !node.outputs.empty() ? node.outputs[0] : node.name;
    name = without_suffix(name, "/" + node.type);
  }
  return unique(name);
}

std::string LayerNames::unique(const std::string& name) { return names_.take(as_layer_name(name)); }

namespace {

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

// Throws: unless the network can be written to checkpoints and read again.
void expect_network_text(const nets::Network& network, const std::string& file) {
  std::istringstream text{nets::to_text(network)};
  static_cast<void>(nets::build_network(nets::read_network(text, file)));
}

ImportedNetwork imported(OnnxModel model, const std::string& file) {
  const bool is_ours = model.producer == kOnnxProducer;
  const std::string name =
      as_layer_name(is_ours ? model.name : std::filesystem::path{file}.stem().string());
  ReadGraph read = [&] {
    const GraphReader graph{std::move(model)};
    return GraphImport{graph, name}.run();
  }();
  expect_network_text(read.network, file);
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
