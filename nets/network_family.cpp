#include "nets/network_family.h"

#include <algorithm>
#include <array>
#include <string>

#include "nets/joined_numbers.h"
#include "nets/resnet.h"
#include "nets/vgg.h"
#include "um/error.h"

namespace spillway::nets {
namespace {

constexpr Shape kPhoto{.channels = 3, .height = 224, .width = 224};
constexpr std::size_t kPhotoClasses = 1000;
constexpr std::size_t kDeepest = 2048;

constexpr NetworkFamily kResnet{"resnet:", "resnet:n1,n2,n3,n4", "resnet:6,32,100,6",
                                "bottlenecks"};
constexpr NetworkFamily kVgg{"vgg:", "vgg:a,b,c,d,e", "vgg:2,22,66,4,4", "convolutions"};
constexpr std::array kFamilies{kResnet, kVgg};

template <std::size_t kStages>
using Depths = std::array<std::size_t, kStages>;

// The numbers of "6,32,100,6", as many as there are stages; nothing where it says something else.
template <std::size_t kStages>
std::optional<Depths<kStages>> parse(std::string_view text) {
  const auto numbers = joined_numbers(text, ',', kDeepest);
  if (!numbers || numbers->size() != kStages) return std::nullopt;
  if (std::ranges::find(*numbers, 0U) != numbers->end()) return std::nullopt;
  Depths<kStages> depths{};
  std::ranges::copy(*numbers, depths.begin());
  return depths;
}

template <std::size_t kStages>
Depths<kStages> depths_of(std::string_view name, const NetworkFamily& family) {
  const auto depths = parse<kStages>(name.substr(family.prefix.size()));
  if (!depths) {
    throw um::Error{"network '" + std::string{name} + "' must say how many " +
                    std::string{family.what} + ", from 1 to " + std::to_string(kDeepest) +
                    ", each of its " + std::to_string(kStages) + " stages has, as " +
                    std::string{family.example} + " does"};
  }
  return *depths;
}

template <std::size_t kStages>
std::size_t sum(const Depths<kStages>& depths) {
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
          .classes = kPhotoClasses,
          .build = std::move(build)};
}

}  // namespace

std::span<const NetworkFamily> network_families() { return kFamilies; }

std::optional<CatalogueEntry> find_in_families(std::string_view name) {
  if (name.starts_with(kResnet.prefix)) {
    const ResnetDepths depths = depths_of<4>(name, kResnet);
    return entry(name, "ResNet with bottlenecks", 3 * sum(depths) + 2, "after He et al., 2015",
                 [own = std::string{name}, depths](const Shape& image, std::size_t classes) {
                   return bottleneck_resnet(own, depths, image, classes);
                 });
  }
  if (name.starts_with(kVgg.prefix)) {
    const VggDepths depths = depths_of<5>(name, kVgg);
    return entry(name, "VGG", sum(depths) + 3, "after Simonyan and Zisserman, 2014",
                 [own = std::string{name}, depths](const Shape& image, std::size_t classes) {
                   return vgg(own, depths, image, classes);
                 });
  }
  return std::nullopt;
}

}  // namespace spillway::nets
