#include "nets/families/network_catalogue.h"

#include <algorithm>
#include <array>
#include <string>
#include <utility>
#include <vector>

#include "nets/families/published_networks.h"
#include "nets/shape.h"
#include "um/error.h"

namespace spillway::nets {
namespace {

constexpr Shape photo(std::size_t side) { return {.channels = 3, .height = side, .width = side}; }
constexpr Shape kDigit{.channels = 1, .height = 28, .width = 28};
constexpr Shape kPhoto = photo(224);

constexpr std::size_t kFamilyClasses = 1000;
constexpr std::size_t kDeepest = 2048;  // with some ten layers each this stays below kMaxLayers
// Layers make several times as many channels as their width.
constexpr std::size_t kWidest = kLargestWidth / 16;

constexpr NetworkFamily kResnet{
    "resnet:", "resnet:n1,n2,n3,n4", "resnet:6,32,100,6", "bottlenecks in each of its 4 stages", 4,
    kDeepest};
constexpr NetworkFamily kVgg{
    "vgg:", "vgg:a,b,c,d,e", "vgg:2,22,66,4,4", "convolutions in each of its 5 stages",
    5,      kDeepest};
constexpr NetworkFamily kGpt{"gpt:",
                             "gpt:layers,heads,width,context",
                             "gpt:6,6,384,256",
                             "layers, heads, numbers of a token, and the most tokens of a text",
                             4,
                             kWidest};
constexpr NetworkFamily kLlama{
    "llama:",
    "llama:layers,heads,kv-heads,width,hidden,context",
    "llama:22,32,4,2048,5632,2048",
    "layers, heads, key heads, numbers of a token, gates, and the most tokens of a text",
    6,
    kWidest};
constexpr std::array kFamilies{kResnet, kVgg, kGpt, kLlama};

template <std::size_t kNumbers>
using Numbers = std::array<std::size_t, kNumbers>;

// Returns the numbers after the prefix of `name`, exactly as many as the family has.
template <std::size_t kNumbers>
Numbers<kNumbers> numbers_of(std::string_view name, const NetworkFamily& family) {
  const auto all = joined_numbers(name.substr(family.prefix.size()), ',', family.largest);
  if (!all || all->size() != kNumbers || std::ranges::find(*all, 0U) != all->end()) {
    throw um::Error{"network '" + std::string{name} + "' must say " +
                    std::to_string(family.numbers) + " numbers from 1 to " +
                    std::to_string(family.largest) + ", " + std::string{family.what} + ", as " +
                    std::string{family.example} + " does"};
  }
  Numbers<kNumbers> numbers{};
  std::ranges::copy(*all, numbers.begin());
  return numbers;
}

void expect_depth(std::string_view name, std::size_t layers) {
  if (layers <= kDeepest) return;
  throw um::Error{"network '" + std::string{name} + "' must have at most " +
                  std::to_string(kDeepest) + " layers, not " + std::to_string(layers)};
}

template <std::size_t kStages>
std::size_t sum(const Numbers<kStages>& depths) {
  std::size_t total = 0;
  for (const std::size_t depth : depths) total += depth;
  return total;
}

CatalogueEntry entry(std::string_view name, const std::string& kind, std::size_t layers,
                     const std::string& paper,
                     std::function<Network(const Shape&, std::size_t)> build) {
  return {.name = std::string{name},
          .description = kind + ", " + std::to_string(layers) + " layers (" + paper + ")",
          .image = kPhoto,
          .classes = kFamilyClasses,
          .build = std::move(build)};
}

CatalogueEntry text_entry(std::string_view name, const std::string& kind, std::size_t layers,
                          const std::string& paper, std::size_t context, std::size_t vocabulary,
                          std::function<Network(const Shape&, std::size_t)> build) {
  CatalogueEntry made = entry(name, kind, layers, paper, std::move(build));
  made.image = tokens(context);
  made.classes = vocabulary;
  return made;
}

CatalogueEntry gpt_entry(std::string_view name) {
  const auto [layers, heads, width, context] = numbers_of<4>(name, kGpt);
  expect_depth(name, layers);
  const GptSizes sizes{.layers = layers, .heads = heads, .width = width, .context = context};
  return text_entry(name, "GPT-2", layers, "after Radford et al., 2019", context, kGptVocabulary,
                    [own = std::string{name}, sizes](const Shape& text, std::size_t vocabulary) {
                      return gpt(own, sizes, text, vocabulary);
                    });
}

CatalogueEntry llama_entry(std::string_view name) {
  const auto [layers, heads, kv_heads, width, hidden, context] = numbers_of<6>(name, kLlama);
  expect_depth(name, layers);
  const LlamaSizes sizes{.layers = layers,
                         .heads = heads,
                         .kv_heads = kv_heads,
                         .width = width,
                         .hidden = hidden,
                         .context = context};
  return text_entry(name, "Llama", layers, "after Touvron et al., 2023", context, kLlamaVocabulary,
                    [own = std::string{name}, sizes](const Shape& text, std::size_t vocabulary) {
                      return llama(own, sizes, text, vocabulary);
                    });
}

// Returns the networks without branches, those with branches, and the transformers.
std::vector<CatalogueEntry> make_catalogue() {
  return {
      {"lenet", "LeNet-5 with ReLU and max pooling (after LeCun et al., 1998)", kDigit, 10, lenet},
      {"alexnet", "AlexNet in one tower (Krizhevsky et al., 2012)", photo(227), 1000, alexnet},
      {"overfeat", "OverFeat, fast model (Sermanet et al., 2013)", photo(231), 1000, overfeat},
      {"vgg11", "VGG, 11 layers (Simonyan and Zisserman, 2014)", kPhoto, 1000, vgg11},
      {"vgg13", "VGG, 13 layers (Simonyan and Zisserman, 2014)", kPhoto, 1000, vgg13},
      {"vgg16", "VGG, 16 layers (Simonyan and Zisserman, 2014)", kPhoto, 1000, vgg16},
      {"vgg19", "VGG, 19 layers (Simonyan and Zisserman, 2014)", kPhoto, 1000, vgg19},
      {"vgg101", "VGG, 101 layers (after Chen et al., moDNN, 2018)", kPhoto, 1000, vgg101},
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

}  // namespace

std::span<const NetworkFamily> network_families() { return kFamilies; }

std::optional<CatalogueEntry> find_in_families(std::string_view name) {
  if (name.starts_with(kResnet.prefix)) {
    const ResnetDepths depths = numbers_of<4>(name, kResnet);
    return entry(name, "ResNet with bottlenecks", 3 * sum(depths) + 2, "after He et al., 2015",
                 [own = std::string{name}, depths](const Shape& image, std::size_t classes) {
                   return bottleneck_resnet(own, depths, image, classes);
                 });
  }
  if (name.starts_with(kVgg.prefix)) {
    const VggDepths depths = numbers_of<5>(name, kVgg);
    return entry(name, "VGG", sum(depths) + 3, "after Simonyan and Zisserman, 2014",
                 [own = std::string{name}, depths](const Shape& image, std::size_t classes) {
                   return vgg(own, depths, image, classes);
                 });
  }
  if (name.starts_with(kGpt.prefix)) return gpt_entry(name);
  if (name.starts_with(kLlama.prefix)) return llama_entry(name);
  return std::nullopt;
}

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
