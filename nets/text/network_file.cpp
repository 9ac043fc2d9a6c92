#include "nets/text/network_file.h"

#include <algorithm>
#include <cstddef>
#include <filesystem>
#include <memory>
#include <sstream>
#include <system_error>
#include <utility>
#include <variant>
#include <vector>

#include "nets/families/network_catalogue.h"
#include "nets/layer_role.h"
#include "nets/shape.h"
#include "nets/shape_inference.h"
#include "nets/text/layer_text.h"
#include "nets/text/network_declaration.h"
#include "um/error.h"
#include "um/files/input_file.h"

namespace spillway::nets {
namespace {

constexpr std::size_t kLargestFile = 64ULL << 20U;  // the largest network has some thousand lines

// Builds the declared network for one image and number of classes.
class Construction {
 public:
  Construction(const NetworkDeclaration& declaration, const Shape& image, std::size_t classes)
      : declaration_{declaration}, classes_{classes}, network_{.name = declaration.name} {
    network_.nodes.reserve(declaration.layers.size() + 1);
    network_.nodes.push_back({.name = "image", .layer = {}, .inputs = {}, .output = image});
  }

  [[nodiscard]] Network build() {
    for_each_line([&](const LayerLine& line) { add(line); });
    expect_classes();
    expect_roles();
    expect_parameters();
    return std::move(network_);
  }

 private:
  // Adds the line to errors that `act` throws.
  template <typename Act>
  void for_each_line(const Act& act) const {
    for (const LayerLine& line : declaration_.layers) {
      try {
        act(line);
      } catch (const um::Error& error) {
        throw declaration_.error(line, error.what());
      }
    }
  }

  void add(const LayerLine& line) {
    Layer layer = to_layer(line.name, line.text, classes_);
    std::vector<Shape> inputs;
    inputs.reserve(line.inputs.size());
    for (const NodeId input : line.inputs) inputs.push_back(network_[input].output);
    const Shape output = infer_shape(line.name, layer, inputs);
    elements_ = saturated_sum({elements_, output.elements()});
    if (elements_ > kMaxElements) {
      throw um::Error{"layer " + line.name + " makes " + to_string(output) +
                      ", and with it all layers together more than 2^40 numbers an image"};
    }
    network_.nodes.push_back(
        {.name = line.name, .layer = layer, .inputs = line.inputs, .output = output});
  }

  void expect_classes() const {
    const std::size_t made = network_.classes();
    if (made == classes_) return;
    const LayerLine& loss = declaration_.layers.back();
    if (std::holds_alternative<VocabularyLoss>(network_.nodes.back().layer)) {
      throw declaration_.error(loss, "layer " + loss.name + " has a vocabulary of " +
                                         std::to_string(made) + ", but the network one of " +
                                         std::to_string(classes_) +
                                         "; write vocabulary=classes for it");
    }
    const std::string& from = network_[loss.inputs[0]].name;
    throw declaration_.error(loss, "layer " + loss.name + " tells " + std::to_string(classes_) +
                                       " classes apart, but reads " + std::to_string(made) +
                                       " numbers from layer " + from +
                                       "; write the word classes for the number that decides that");
  }

  void expect_roles() const {
    const LayerRoles roles{network_};
    std::size_t node = 0;  // the image
    for_each_line([&](const LayerLine& /*line*/) { roles.expect(network_.nodes[++node]); });
  }

  void expect_parameters() const {
    const std::size_t count = count_parameters(network_);
    if (count == 0) {
      throw um::Error{declaration_.file +
                      " has no layer with parameters, so that there is nothing "
                      "to train; add a convolution or a linear layer"};
    }
    if (count > kMaxElements) {
      throw um::Error{declaration_.file +
                      " has more than 2^40 parameters; make its layers smaller"};
    }
  }

  const NetworkDeclaration& declaration_;
  std::size_t classes_;
  Network network_;
  std::size_t elements_ = 0;  // of all outputs
};

bool is_built_in(const std::string& name) {
  for (const CatalogueEntry& entry : catalogue()) {
    if (entry.name == name) return true;
  }
  for (const NetworkFamily& family : network_families()) {
    if (name.starts_with(family.prefix)) return true;
  }
  return false;
}

// A line, split into columns.
struct Row {
  std::string name;
  std::string kind;
  std::string rest;  // inputs, unless the node reads just the one before it, and parameters
  std::string shape;
};

// Returns `network` with one more class; itself if the number of classes is fixed, as in a user's
// file without the word `classes`.
Network twin_of(const Network& network, const CatalogueEntry& entry,
                const NetworkOptions& options) {
  NetworkOptions more = options;
  more.classes = network.classes() + 1;
  try {
    return build_network(entry, more);
  } catch (const um::Error&) {
    return network;
  }
}

std::vector<Row> rows_of(const Network& network, const Network& twin) {
  um::expects(network.nodes.size() == twin.nodes.size(), "layers do not depend on the classes");
  std::vector<Row> rows;
  for (std::size_t i = 1; i < network.nodes.size(); ++i) {
    const Node& node = network.nodes[i];
    const LayerText text = to_text(node.layer, twin.nodes[i].layer);
    std::string rest;
    const auto append = [&](const std::string& word) { rest += (rest.empty() ? "" : " ") + word; };
    if (node.inputs.size() != 1 || static_cast<std::size_t>(node.inputs[0]) + 1 != i) {
      for (const NodeId input : node.inputs) append(network[input].name);
    }
    for (const LayerParameter& parameter : text.parameters) {
      append(parameter.word + "=" + parameter.value);
    }
    rows.push_back({.name = node.name,
                    .kind = text.kind,
                    .rest = std::move(rest),
                    .shape = to_string(node.output)});
  }
  return rows;
}

// Returns the width of a column: its longest text, up to a limit that longer texts may exceed.
std::size_t width_of(const std::vector<Row>& rows, std::string Row::*column) {
  constexpr std::size_t kWidestColumn = 48;
  std::size_t width = 0;
  for (const Row& row : rows) width = std::max(width, (row.*column).size());
  return std::min(width, kWidestColumn);
}

void append_column(std::string& line, const std::string& text, std::size_t width) {
  line += text;
  line.append(text.size() < width ? width - text.size() : 0, ' ');
  line += "  ";
}

}  // namespace

CatalogueEntry read_network(std::istream& text, const std::string& file) {
  TextLines lines{text, file};
  // shared: function objects are copied
  const auto declaration = std::make_shared<const NetworkDeclaration>(read_declaration(lines));
  return {.name = declaration->name,
          .description =
              declaration->description.empty() ? "a network of your own" : declaration->description,
          .image = declaration->image,
          .classes = declaration->classes,
          .build = [declaration](const Shape& image, std::size_t classes) {
            return Construction{*declaration, image, classes}.build();
          }};
}

CatalogueEntry read_network_file(const std::string& path) {
  std::error_code ignored;
  if (std::filesystem::is_directory(path, ignored)) {
    throw um::Error{"cannot read " + path + ": it is a folder, not a network file"};
  }
  std::istringstream text{um::InputFile{path}.text(kLargestFile)};
  return read_network(text, path);
}

bool is_network_file(const std::string& name_or_path) {
  if (name_or_path.find('/') != std::string::npos) return true;
  if (name_or_path.ends_with(".net") || name_or_path.ends_with(".onnx")) return true;
  std::error_code none;  // a name too long for a file is not a file
  return !is_built_in(name_or_path) && std::filesystem::exists(name_or_path, none) &&
         !std::filesystem::is_directory(name_or_path, none);
}

CatalogueEntry open_network(const std::string& name_or_path) {
  return is_network_file(name_or_path) ? read_network_file(name_or_path)
                                       : find_network(name_or_path);
}

std::string to_text(const CatalogueEntry& entry, const NetworkOptions& options) {
  const Network network = build_network(entry, options);
  const std::vector<Row> rows = rows_of(network, twin_of(network, entry, options));
  std::string text = std::string{kNetworkFileFormat} + "\nname " + network.name + "\ndescription " +
                     entry.description + "\ninput " + to_string(network.input()) + "\nclasses " +
                     std::to_string(network.classes()) + "\n\n";
  const std::size_t name_width = width_of(rows, &Row::name);
  const std::size_t kind_width = width_of(rows, &Row::kind);
  const std::size_t rest_width = width_of(rows, &Row::rest);
  for (const Row& row : rows) {
    append_column(text, row.name, name_width);
    append_column(text, row.kind, kind_width);
    append_column(text, row.rest, rest_width);
    text += "# " + row.shape + "\n";
  }
  return text;
}

std::string to_text(const Network& network) {
  return std::string{kNetworkFileFormat} + "\nname " + network.name + "\ninput " +
         to_string(network.input()) + "\nclasses " + std::to_string(network.classes()) + "\n\n" +
         layers_text(network);
}

std::string layers_text(const Network& network) {
  std::string text;
  for (const Row& row : rows_of(network, network)) {
    text += row.name + " " + row.kind + " " + row.rest + " # " + row.shape + "\n";
  }
  return text;
}

}  // namespace spillway::nets
