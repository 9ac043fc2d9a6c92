#include "nets/text/network_file.h"

#include <filesystem>
#include <memory>
#include <sstream>
#include <system_error>
#include <utility>
#include <variant>

#include "nets/families/network_family.h"
#include "nets/layer_role.h"
#include "nets/saturated.h"
#include "nets/shape_inference.h"
#include "nets/text/network_declaration.h"
#include "um/error.h"
#include "um/files/input_file.h"

namespace spillway::nets {
namespace {

constexpr std::size_t kLargestFile = 64ULL << 20U;  // the largest network has some thousand lines

// Makes the network that a file declares, for one image and number of classes.
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
  // Says the line where `act` throws.
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
  std::error_code none;  // a name that is too long for a file is no file
  return !is_built_in(name_or_path) && std::filesystem::exists(name_or_path, none) &&
         !std::filesystem::is_directory(name_or_path, none);
}

CatalogueEntry open_network(const std::string& name_or_path) {
  return is_network_file(name_or_path) ? read_network_file(name_or_path)
                                       : find_network(name_or_path);
}

}  // namespace spillway::nets
