#include "src/data/images/color_jitter.h"

#include <algorithm>
#include <utility>

namespace spillway {
namespace {

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

}  // namespace

void adjust(ColorProperty property, float factor, std::span<float> image) {
  const std::size_t plane = image.size() / 3;
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

void jitter_colors(float strength, Random& random, std::span<float> image) {
  std::array order{ColorProperty::kBrightness, ColorProperty::kContrast,
                   ColorProperty::kSaturation};
  std::swap(order[0], order[random.next() % 3]);
  std::swap(order[1], order[1 + random.next() % 2]);
  for (const ColorProperty property : order) {
    adjust(property, random.uniform(std::max(0.0F, 1 - strength), 1 + strength), image);
  }
}

}  // namespace spillway
