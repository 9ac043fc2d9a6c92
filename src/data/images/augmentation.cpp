#include "src/data/images/augmentation.h"

#include <array>
#include <charconv>
#include <utility>

namespace spillway {
namespace {

std::string shortest(float value) {
  std::array<char, 32> text{};
  return {text.data(), std::to_chars(text.data(), text.data() + text.size(), value).ptr};
}

}  // namespace

std::optional<Augmentation> find_augmentation(std::string_view name) {
  if (name == "none") return Augmentation{};
  if (name == "standard") return Augmentation{.least_area = 0.08F, .flip = 0.5F};
  if (name == "strong") {
    return Augmentation{.least_area = 0.08F, .flip = 0.5F, .color_jitter = 0.4F, .erase = 0.1F};
  }
  return std::nullopt;
}

std::string to_string(const Augmentation& augmentation) {
  std::string text;
  for (const auto& [name, value] :
       std::array<std::pair<const char*, float>, 5>{{{"crop", augmentation.least_area},
                                                     {"flip", augmentation.flip},
                                                     {"color jitter", augmentation.color_jitter},
                                                     {"hue", augmentation.hue},
                                                     {"erase", augmentation.erase}}}) {
    if (value > 0) text += (text.empty() ? "" : ", ") + std::string{name} + ' ' + shortest(value);
  }
  return text.empty() ? "none" : text;
}

}  // namespace spillway
