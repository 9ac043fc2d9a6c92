#include "src/io/images/augmentation.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <utility>

namespace spillway {
namespace {

std::string shortest(float value) {
  std::array<char, 32> text{};
  return {text.data(), std::to_chars(text.data(), text.data() + text.size(), value).ptr};
}

float luminance(std::span<const float> image, std::size_t pixel) {
  const std::size_t plane = image.size() / 3;
  return 0.2989F * image[pixel] + 0.587F * image[plane + pixel] + 0.114F * image[2 * plane + pixel];
}

float mean_luminance(std::span<const float> image) {
  const std::size_t plane = image.size() / 3;
  double sum = 0;
  for (std::size_t i = 0; i < plane; ++i) sum += static_cast<double>(luminance(image, i));
  return static_cast<float>(sum / static_cast<double>(plane));
}

void blend(float& value, float other, float factor) {
  value = std::clamp(factor * value + (1 - factor) * other, 0.0F, 1.0F);
}

// Hue and saturation, 0 to 1, and the largest colour value.
struct Hsv {
  float hue = 0;
  float saturation = 0;
  float value = 0;
};

Hsv to_hsv(float red, float green, float blue) {
  const float most = std::max({red, green, blue});
  const float range = most - std::min({red, green, blue});
  if (range == 0) return {.value = most};
  const auto below = [&](float color) { return (most - color) / range; };
  float sixths = 4 + below(green) - below(red);
  if (most == red) {
    sixths = below(blue) - below(green);
  } else if (most == green) {
    sixths = 2 + below(red) - below(blue);
  }
  return {.hue = std::fmod(sixths / 6 + 1, 1.0F), .saturation = range / most, .value = most};
}

std::array<float, 3> to_rgb(const Hsv& color) {
  const float sixths = color.hue * 6;
  const float whole = std::floor(sixths);
  const float rest = sixths - whole;
  const float value = color.value;
  const auto less = [&](float part) {
    return std::clamp(value * (1 - color.saturation * part), 0.0F, 1.0F);
  };
  switch (static_cast<int>(whole) % 6) {
    case 0:
      return {value, less(1 - rest), less(1)};
    case 1:
      return {less(rest), value, less(1)};
    case 2:
      return {less(1), value, less(1 - rest)};
    case 3:
      return {less(1), less(rest), value};
    case 4:
      return {less(1 - rest), less(1), value};
    default:
      return {value, less(1), less(rest)};
  }
}

void turn_hue(float part, std::span<float> image) {
  const std::size_t plane = image.size() / 3;
  for (std::size_t i = 0; i < plane; ++i) {
    Hsv color = to_hsv(image[i], image[plane + i], image[2 * plane + i]);
    color.hue += part;
    color.hue -= std::floor(color.hue);
    const std::array<float, 3> turned = to_rgb(color);
    for (std::size_t c = 0; c < 3; ++c) image[c * plane + i] = turned[c];
  }
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

void adjust(ColorProperty property, float factor, std::span<float> image) {
  const std::size_t plane = image.size() / 3;
  if (property == ColorProperty::kHue) return turn_hue(factor, image);
  if (property == ColorProperty::kSaturation) {
    for (std::size_t i = 0; i < plane; ++i) {
      const float grey = luminance(image, i);
      for (std::size_t c = 0; c < 3; ++c) blend(image[c * plane + i], grey, factor);
    }
    return;
  }
  const float other = property == ColorProperty::kContrast ? mean_luminance(image) : 0.0F;
  for (float& value : image) blend(value, other, factor);
}

void jitter_colors(const ColorChanges& most, Random& random, std::span<float> image) {
  std::array all{ColorProperty::kBrightness, ColorProperty::kContrast, ColorProperty::kSaturation,
                 ColorProperty::kHue};
  std::span<ColorProperty> order{all};
  if (most.hue == 0) order = order.first(3);
  if (most.strength == 0) order = order.subspan(std::min<std::size_t>(3, order.size()));
  for (std::size_t i = 0; i + 1 < order.size(); ++i) {
    std::swap(order[i], order[i + random.next() % (order.size() - i)]);
  }
  for (const ColorProperty property : order) {
    const float number = property == ColorProperty::kHue
                             ? random.uniform(-most.hue, most.hue)
                             : random.uniform(std::max(0.0F, 1 - most.strength), 1 + most.strength);
    adjust(property, number, image);
  }
}

}  // namespace spillway
