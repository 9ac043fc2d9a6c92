#include "tests/golden/drawn_numbers.h"

#include <cstddef>
#include <utility>
#include <variant>

#include "src/ops/parameter.h"

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

// The initial values of a block, from sequences with names that begin with `name`.
struct Start {
  std::string name;
  FirstValues kind;

  [[nodiscard]] std::vector<float> numbers(const std::string& part, std::size_t count, float scale,
                                           float shift = 0) const {
    std::vector<float> drawn = draw(name + part, count);
    for (float& number : drawn) number = shift + scale * number;
    return drawn;
  }
  [[nodiscard]] float scale(std::size_t fan_in) const {
    return kind == FirstValues::kGentle ? close_weight_scale(fan_in) : weight_scale(fan_in);
  }
  [[nodiscard]] std::vector<float> weighted(std::size_t out, std::size_t fan_in, bool bias) const {
    std::vector<float> values = numbers("", out * fan_in, scale(fan_in));
    return bias ? joined(std::move(values), numbers(".bias", out, 0.25F)) : values;
  }
  static std::vector<float> joined(std::vector<float> first, const std::vector<float>& second) {
    first.insert(first.end(), second.begin(), second.end());
    return first;
  }

  std::vector<float> operator()(const ConvolutionParameters& p) const {
    return weighted(p.out, p.in / p.groups * p.kernel.height * p.kernel.width, p.bias);
  }
  std::vector<float> operator()(const TransposedConvolutionParameters& p) const {
    const std::size_t taps = kind == FirstValues::kGentle ? 4 : p.kernel.height * p.kernel.width;
    const std::size_t fan_in = p.in / p.groups * taps;
    std::vector<float> values = numbers("", element_count(p.adjoint()), scale(fan_in));
    return p.bias ? joined(std::move(values), numbers(".bias", p.out, 0.25F)) : values;
  }
  std::vector<float> operator()(const LinearParameters& p) const {
    return weighted(p.out, p.in.elements(), p.bias);
  }
  std::vector<float> operator()(const BatchNormParameters& p) const {
    if (kind == FirstValues::kGentle) {
      return joined(numbers("", p.channels, 0.25F, 0.5F), numbers(".bias", p.channels, 1, 0.5F));
    }
    return joined(numbers("", p.channels, 0.5F, 1), numbers(".bias", p.channels, 0.5F));
  }
  std::vector<float> operator()(const RowNormParameters& p) const {
    std::vector<float> gamma = numbers("", p.channels, 0.5F, 1);
    return p.bias ? joined(std::move(gamma), numbers(".bias", p.channels, 0.5F)) : gamma;
  }
  std::vector<float> operator()(const EmbeddingParameters& p) const {
    return numbers("", p.vocabulary * p.features, 0.5F);
  }
  std::vector<float> operator()(const PositionParameters& p) const {
    return joined(numbers("", p.positions * p.features, 0.25F),
                  numbers(".bias", p.segments * p.features, 0.25F));
  }
  std::vector<float> operator()(const ClassTokenParameters& p) const {
    return numbers("", p.features, 0.5F);
  }
  std::vector<float> operator()(const BiasParameters& p) const {
    return numbers("", p.count, 0.25F);
  }
  std::vector<float> operator()(const BatchNormStatistics& p) const {
    return joined(numbers(".mean", p.channels, 0.25F), numbers(".variance", p.channels, 0.5F, 1));
  }
};

// Returns "norm" for "norm.running".
std::string layer_name(const StateBlock& block) {
  return block.role == StateRole::kStatistics ? block.name.substr(0, block.name.rfind('.'))
                                              : block.name;
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

std::vector<BlockNumbers> drawn_state(const Step& step, const std::string& prefix,
                                      FirstValues kind) {
  std::vector<BlockNumbers> blocks;
  for (const StateBlock& block : step.state) {
    BlockNumbers numbers{.name = block.name,
                         .values = std::vector<float>(element_count(block.spec))};
    if (block.role != StateRole::kOptimizer) {
      const Start start{.name = prefix + " " + layer_name(block), .kind = kind};
      numbers.values = std::visit(start, block.spec);
    }
    blocks.push_back(std::move(numbers));
  }
  return blocks;
}

}  // namespace spillway::test
