#include "nets/families/network_family.h"

#include <algorithm>
#include <array>
#include <string>

#include "nets/families/gpt.h"
#include "nets/families/llama.h"
#include "nets/families/resnet.h"
#include "nets/families/vgg.h"
#include "nets/shape.h"
#include "um/error.h"

namespace spillway::nets {
namespace {

constexpr Shape kFamilyPhoto{.channels = 3, .height = 224, .width = 224};
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
          .image = kFamilyPhoto,
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

}  // namespace spillway::nets
