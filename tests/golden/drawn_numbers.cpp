#include "tests/golden/drawn_numbers.h"

namespace spillway::test {
namespace {

std::uint32_t key(std::string_view name) {
  std::uint32_t key = 0;
  for (const char character : name) key = 31 * key + static_cast<unsigned char>(character);
  return key;
}

// The finalizer of MurmurHash3.
std::uint32_t mix(std::uint32_t x) {
  x = (x ^ (x >> 16U)) * 0x85EBCA6BU;
  x = (x ^ (x >> 13U)) * 0xC2B2AE35U;
  return x ^ (x >> 16U);
}

std::uint32_t element(std::uint32_t key, std::size_t i) {
  return mix(key + static_cast<std::uint32_t>(i) * 0x9E3779B1U);
}

}  // namespace

std::vector<float> draw(std::string_view name, std::size_t count) {
  std::vector<float> numbers(count);
  const std::uint32_t start = key(name);
  for (std::size_t i = 0; i < count; ++i) {
    const auto part = static_cast<std::int32_t>(element(start, i) % 513);
    numbers[i] = static_cast<float>(part - 256) / 256;
  }
  return numbers;
}

std::vector<std::int32_t> draw_labels(std::string_view name, std::size_t count,
                                      std::size_t classes) {
  std::vector<std::int32_t> labels(count);
  for (std::size_t i = 0; i < count; ++i) {
    labels[i] = static_cast<std::int32_t>(element(key(name), i) % classes);
  }
  return labels;
}

float weight_scale(std::size_t fan_in) {
  float scale = 1;
  while (scale * scale * static_cast<float>(fan_in) > 6) scale /= 2;
  return scale;
}

float close_weight_scale(std::size_t fan_in) {
  const auto power = static_cast<double>(weight_scale(fan_in));
  double scale = power;
  for (int m = 9; m < 16; ++m) {
    const double larger = power * m / 8;
    if (larger * larger * static_cast<double>(fan_in) <= 6) scale = larger;
  }
  return static_cast<float>(scale);
}

}  // namespace spillway::test
