#include "tools/golden/family_networks.h"

#include <algorithm>
#include <array>
#include <cstddef>

#include "nets/families/network_catalogue.h"
#include "nets/families/published_networks.h"
#include "nets/text/network_file.h"
#include "um/error.h"

namespace spillway::golden {
namespace {

constexpr std::size_t kClasses = 10;

struct FamilyNetwork {
  std::string_view name;
  std::string_view built_in;
  nets::Shape image;
  bool has_heads = false;
};

constexpr nets::Shape photo(std::size_t side) { return {3, side, side}; }

constexpr std::array<FamilyNetwork, 17> kNetworks{
    {{"lenet", "lenet", {1, 28, 28}},
     {"alexnet", "alexnet", photo(115)},
     {"overfeat", "overfeat", photo(71)},
     {"vgg11", "vgg11", photo(32)},
     {"googlenet", "googlenet", photo(64)},
     {"googlenet-with-heads", "googlenet", photo(96), true},
     {"inception-v3", "inception-v3", photo(107)},
     {"inception-v4", "inception-v4", photo(107)},
     {"resnet34", "resnet34", photo(64)},
     {"resnet:1,2,1,1", "resnet:1,2,1,1", photo(64)},
     {"densenet121", "densenet121", photo(64)},
     {"thin-fcn8s", "fcn8s", {3, 17, 23}},
     {"thin-fcn32s", "fcn32s", {3, 17, 23}},
     {"small-gpt", "gpt:2,3,24,17", nets::tokens(17)},
     {"small-llama", "llama:2,4,2,32,40,19", nets::tokens(19)},
     {"small-bert", "", nets::tokens(13)},
     {"small-vit", "", {3, 15, 21}}}};

const FamilyNetwork& find(std::string_view name) {
  const auto* const found =
      std::find_if(kNetworks.begin(), kNetworks.end(),
                   [&](const FamilyNetwork& network) { return network.name == name; });
  um::expects(found != kNetworks.end(), "a network of the family golden file");
  return *found;
}

// FCN with few channels: its first convolution pads the image to at least 200 x 200.
nets::Network thin_fcn(const FamilyNetwork& network, const nets::Shape& image,
                       std::size_t classes) {
  const nets::FcnWidths widths{.stages = {8, 8, 16, 16, 16}, .hidden = 24};
  const auto stride = network.built_in == "fcn8s" ? nets::FcnStride::k8 : nets::FcnStride::k32;
  return nets::fcn(std::string{network.name}, stride, widths, image, classes);
}

nets::Network small_bert(const nets::Shape& text, std::size_t vocabulary) {
  return nets::bert("small-bert", {.layers = 2, .heads = 2, .width = 20, .context = 16}, text,
                    vocabulary);
}
nets::Network small_vit(const nets::Shape& image, std::size_t classes) {
  return nets::vit("small-vit", {.layers = 2, .heads = 3, .width = 24, .patch = 5}, image, classes);
}

// Of which the catalogue has no small ones.
nets::CatalogueEntry built_in(const FamilyNetwork& network) {
  if (!network.built_in.empty()) return nets::find_network(network.built_in);
  nets::CatalogueEntry entry{.name = std::string{network.name},
                             .description = "",
                             .image = network.image,
                             .classes = kClasses,
                             .build = network.name == "small-vit" ? small_vit : small_bert};
  return entry;
}

nets::CatalogueEntry entry(const FamilyNetwork& network) {
  nets::CatalogueEntry entry = built_in(network);
  entry.image = network.image;
  entry.classes = kClasses;
  if (network.has_heads) entry.build = entry.build_with_heads;
  if (network.name.starts_with("thin")) {
    entry.build = [network](const nets::Shape& image, std::size_t classes) {
      return thin_fcn(network, image, classes);
    };
  }
  return entry;
}

}  // namespace

std::vector<std::string> family_network_names() {
  std::vector<std::string> names;
  names.reserve(kNetworks.size());
  for (const FamilyNetwork& network : kNetworks) names.emplace_back(network.name);
  return names;
}

nets::Network family_network(std::string_view name) {
  const nets::CatalogueEntry found = entry(find(name));
  return found.build(found.image, found.classes);
}

std::string family_network_text(std::string_view name) { return nets::to_text(entry(find(name))); }

}  // namespace spillway::golden
