#include "nets/families/network_catalogue.h"

#include <utility>
#include <vector>

#include "nets/families/bert.h"
#include "nets/families/densenet.h"
#include "nets/families/fcn.h"
#include "nets/families/gpt.h"
#include "nets/families/inception.h"
#include "nets/families/network_family.h"
#include "nets/families/plain_networks.h"
#include "nets/families/resnet.h"
#include "nets/families/vgg.h"
#include "nets/families/vit.h"
#include "um/error.h"

namespace spillway::nets {
namespace {

constexpr Shape photo(std::size_t side) { return {.channels = 3, .height = side, .width = side}; }
constexpr Shape kDigit{.channels = 1, .height = 28, .width = 28};
constexpr Shape kPhoto = photo(224);

// Networks without branches.
std::vector<CatalogueEntry> plain_networks() {
  return {
      {"lenet", "LeNet-5 with ReLU and max pooling (after LeCun et al., 1998)", kDigit, 10, lenet},
      {"alexnet", "AlexNet in one tower (Krizhevsky et al., 2012)", photo(227), 1000, alexnet},
      {"overfeat", "OverFeat, fast model (Sermanet et al., 2013)", photo(231), 1000, overfeat},
      {"vgg11", "VGG, 11 layers (Simonyan and Zisserman, 2014)", kPhoto, 1000, vgg11},
      {"vgg13", "VGG, 13 layers (Simonyan and Zisserman, 2014)", kPhoto, 1000, vgg13},
      {"vgg16", "VGG, 16 layers (Simonyan and Zisserman, 2014)", kPhoto, 1000, vgg16},
      {"vgg19", "VGG, 19 layers (Simonyan and Zisserman, 2014)", kPhoto, 1000, vgg19},
      {"vgg101", "VGG, 101 layers (after Chen et al., moDNN, 2018)", kPhoto, 1000, vgg101},
  };
}

// Networks with branches.
std::vector<CatalogueEntry> branched_networks() {
  return {
      {"googlenet", "GoogLeNet with batch norm (Szegedy et al., 2014)", kPhoto, 1000, googlenet,
       googlenet_with_heads},
      {"inception-v3", "Inception, version 3 (Szegedy et al., 2015)", photo(299), 1000,
       inception_v3, inception_v3_with_head},
      {"inception-v4", "Inception, version 4 (Szegedy et al., 2016)", photo(299), 1000,
       inception_v4},
      {"resnet18", "ResNet with basic blocks, 18 layers (He et al., 2015)", kPhoto, 1000, resnet18},
      {"resnet34", "ResNet with basic blocks, 34 layers (He et al., 2015)", kPhoto, 1000, resnet34},
      {"resnet50", "ResNet with bottlenecks, 50 layers (He et al., 2015)", kPhoto, 1000, resnet50},
      {"resnet101", "ResNet with bottlenecks, 101 layers (He et al., 2015)", kPhoto, 1000,
       resnet101},
      {"resnet152", "ResNet with bottlenecks, 152 layers (He et al., 2015)", kPhoto, 1000,
       resnet152},
      {"densenet121", "DenseNet, 121 layers (Huang et al., 2016)", kPhoto, 1000, densenet121},
      {"densenet161", "DenseNet, 161 layers (Huang et al., 2016)", kPhoto, 1000, densenet161},
      {"densenet169", "DenseNet, 169 layers (Huang et al., 2016)", kPhoto, 1000, densenet169},
      {"densenet201", "DenseNet, 201 layers (Huang et al., 2016)", kPhoto, 1000, densenet201},
      {"squeezenet", "SqueezeNet 1.1 (Iandola et al., 2016)", kPhoto, 1000, squeezenet},
      {"fcn8s", "FCN of VGG-16 that adds pool3 and pool4 (Long et al., 2015)", photo(500), 21,
       fcn8s},
      {"fcn32s", "FCN of VGG-16, upsampled at once (Long et al., 2015)", photo(500), 21, fcn32s},
  };
}

std::vector<CatalogueEntry> transformers() {
  return {
      {"vit-b16", "Vision transformer, base (Dosovitskiy et al., 2020)", kPhoto, 1000, vit_b16},
      {"vit-l16", "Vision transformer, large (Dosovitskiy et al., 2020)", kPhoto, 1000, vit_l16},
      {"gpt2", "GPT-2, 12 layers (Radford et al., 2019)", tokens(1024), kGptVocabulary, gpt2},
      {"gpt2-medium", "GPT-2, 24 layers (Radford et al., 2019)", tokens(1024), kGptVocabulary,
       gpt2_medium},
      {"gpt2-large", "GPT-2, 36 layers (Radford et al., 2019)", tokens(1024), kGptVocabulary,
       gpt2_large},
      {"gpt2-xl", "GPT-2, 48 layers (Radford et al., 2019)", tokens(1024), kGptVocabulary, gpt2_xl},
      {"bert-base", "BERT with its masked-language head, 12 layers (Devlin et al., 2018)",
       tokens(512), kBertVocabulary, bert_base},
      {"bert-large", "BERT with its masked-language head, 24 layers (Devlin et al., 2018)",
       tokens(512), kBertVocabulary, bert_large},
  };
}

std::vector<CatalogueEntry> make_catalogue() {
  std::vector<CatalogueEntry> all = plain_networks();
  for (auto* const make : {branched_networks, transformers}) {
    for (CatalogueEntry& entry : make()) all.push_back(std::move(entry));
  }
  return all;
}

}  // namespace

std::span<const CatalogueEntry> catalogue() {
  static const std::vector<CatalogueEntry> all = make_catalogue();
  return all;
}

CatalogueEntry find_network(std::string_view name) {
  constexpr std::string_view kWithHeads = "+aux-heads";
  std::string names;
  for (const CatalogueEntry& entry : catalogue()) {
    if (entry.name == name) return entry;
    names += (names.empty() ? "" : ", ") + entry.name;
  }
  if (auto member = find_in_families(name)) return *member;
  if (name.ends_with(kWithHeads)) {
    name.remove_suffix(kWithHeads.size());
    throw um::Error{"auxiliary heads are asked for by a flag: --net " + std::string{name} +
                    " --aux-heads"};
  }
  for (const NetworkFamily& family : network_families()) names += ", " + std::string{family.form};
  throw um::Error{"there is no network called '" + std::string{name} + "'; there are " + names};
}

Network build_network(std::string_view name, const NetworkOptions& options) {
  return build_network(find_network(name), options);
}

Network build_network(const CatalogueEntry& entry, const NetworkOptions& options) {
  const std::size_t classes = options.classes.value_or(entry.classes);
  if (classes < 2) {
    throw um::Error{"network " + entry.name + " needs at least 2 classes to tell apart, not " +
                    std::to_string(classes)};
  }
  if (options.auxiliary_heads && !entry.build_with_heads) {
    throw um::Error{"network " + entry.name +
                    " has no auxiliary heads; googlenet and inception-v3 have"};
  }
  const auto& build = options.auxiliary_heads ? entry.build_with_heads : entry.build;
  Network network = build(options.image.value_or(entry.image), classes);
  if (options.dropout) set_dropout(network, *options.dropout);
  return network;
}

}  // namespace spillway::nets
