#include "nets/catalogue.h"

#include <array>

#include "nets/lenet.h"
#include "nets/resnet.h"
#include "nets/vgg.h"
#include "um/error.h"

namespace spillway::nets {
namespace {

constexpr Shape kDigit{.channels = 1, .height = 28, .width = 28};
constexpr Shape kPhoto{.channels = 3, .height = 224, .width = 224};

constexpr std::array kCatalogue{
    CatalogueEntry{"lenet", "LeNet-5 with ReLU and max pooling (after LeCun et al., 1998)", kDigit,
                   10, lenet},
    CatalogueEntry{"vgg16", "VGG, 16 layers (Simonyan and Zisserman, 2014)", kPhoto, 1000, vgg16},
    CatalogueEntry{"vgg19", "VGG, 19 layers (Simonyan and Zisserman, 2014)", kPhoto, 1000, vgg19},
    CatalogueEntry{"resnet18", "ResNet with basic blocks, 18 layers (He et al., 2015)", kPhoto,
                   1000, resnet18},
    CatalogueEntry{"resnet50", "ResNet with bottlenecks, 50 layers (He et al., 2015)", kPhoto, 1000,
                   resnet50},
};

}  // namespace

std::span<const CatalogueEntry> catalogue() { return kCatalogue; }

const CatalogueEntry& find_network(std::string_view name) {
  std::string names;
  for (const CatalogueEntry& entry : catalogue()) {
    if (entry.name == name) return entry;
    names += (names.empty() ? "" : ", ") + std::string{entry.name};
  }
  throw um::Error{"there is no network called '" + std::string{name} + "'; there are " + names};
}

Network build_network(std::string_view name, const NetworkOptions& options) {
  const CatalogueEntry& entry = find_network(name);
  const std::size_t classes = options.classes.value_or(entry.classes);
  if (classes < 2) {
    throw um::Error{"network " + std::string{name} +
                    " needs at least 2 classes to tell apart, not " + std::to_string(classes)};
  }
  return entry.build(options.image.value_or(entry.image), classes);
}

}  // namespace spillway::nets
