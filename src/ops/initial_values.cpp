#include "src/ops/initial_values.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <numbers>
#include <random>
#include <string_view>

namespace spillway {
namespace {

// The standard's generators give the same numbers everywhere, its distributions do not; the last
// bit of normal() is that of this machine's logarithm and cosine.
class ParameterRandom {
 public:
  ParameterRandom(std::uint64_t seed, std::uint64_t index) {
    std::seed_seq sequence{seed & UINT32_MAX, seed >> 32U, index & UINT32_MAX, index >> 32U};
    generator_.seed(sequence);
  }

  double uniform() { return static_cast<double>(generator_() >> 11U) * 0x1p-53; }  // in [0, 1)
  // Box and Muller.
  double normal() {
    const double radius = std::sqrt(-2 * std::log(1 - uniform()));
    return radius * std::cos(2 * std::numbers::pi * uniform());
  }

 private:
  std::mt19937_64 generator_;
};

constexpr double kLinearDeviation = 0.01;  // torchvision's, of VGG

// 1 in the middle of `size` numbers, 0 where the next pixel's triangle has its middle: at a
// distance of half the size, rounded up.
double triangle(std::size_t at, std::size_t size) {
  const std::size_t half = (size + 1) / 2;
  const auto reach = static_cast<double>(half);
  const double middle = (static_cast<double>(size) - 1) / 2;
  return 1 - std::abs(static_cast<double>(at) - middle) / reach;
}

constexpr std::array kRules{Initialisation::kXavier, Initialisation::kTorchvision,
                            Initialisation::kTorchvisionResnet,
                            Initialisation::kTorchvisionDensenet, Initialisation::kPytorch};

// By the outputs' fan.
bool draws_by_fan_out(Initialisation rule) {
  return rule == Initialisation::kTorchvision || rule == Initialisation::kTorchvisionResnet;
}

struct Draw {
  Initialisation rule;
  ParameterRandom random;
  std::vector<float> values;

  // Leaves what follows the weights, the biases, zero.
  void operator()(const ConvolutionParameters& p) {
    const std::size_t taps = p.kernel.height * p.kernel.width;
    const std::size_t fan_in = p.in / p.groups * taps;
    if (rule == Initialisation::kPytorch) return draw_uniform(values.size(), fan_in);
    draw_he(p.out * fan_in, draws_by_fan_out(rule) ? p.out * taps : fan_in);
  }
  void operator()(const TransposedConvolutionParameters& p) {
    if (p.in == p.out) {
      interpolate(p);
    } else {
      draw_he(p.in * (p.out / p.groups) * p.kernel.height * p.kernel.width,
              p.in / p.groups * p.kernel.height * p.kernel.width);
    }
  }
  void operator()(const LinearParameters& p) {
    const std::size_t fan_in = p.in.elements();
    if (rule == Initialisation::kTorchvision) return draw_normal(p.out * fan_in, kLinearDeviation);
    if (rule == Initialisation::kTorchvisionDensenet) return draw_uniform(p.out * fan_in, fan_in);
    if (rule != Initialisation::kXavier) return draw_uniform(values.size(), fan_in);
    const double bound = std::sqrt(6 / static_cast<double>(fan_in + p.out));
    std::generate_n(values.begin(), p.out * fan_in,
                    [&] { return static_cast<float>(bound * (2 * random.uniform() - 1)); });
  }
  void operator()(const BatchNormParameters& p) { std::fill_n(values.begin(), p.channels, 1.F); }
  void operator()(const RowNormParameters& p) { std::fill_n(values.begin(), p.channels, 1.F); }
  // GPT-2's (Radford et al., 2019), and BERT's.
  void operator()(const EmbeddingParameters& p) { draw_table(p.vocabulary * p.features); }
  void operator()(const PositionParameters& p) {
    draw_table((p.positions + p.segments) * p.features);
  }
  void operator()(const ClassTokenParameters& p) { draw_table(p.features); }
  void operator()(const BiasParameters& /*p*/) {}
  void operator()(const BatchNormStatistics& p) { std::fill_n(values.rbegin(), p.channels, 1.F); }

  void draw_he(std::size_t count, std::size_t fan) {
    draw_normal(count, std::sqrt(2 / static_cast<double>(fan)));
  }
  void draw_table(std::size_t count) { draw_normal(count, 0.02); }
  void draw_normal(std::size_t count, double deviation) {
    std::generate_n(values.begin(), count,
                    [&] { return static_cast<float>(deviation * random.normal()); });
  }
  void draw_uniform(std::size_t count, std::size_t fan_in) {
    const double bound = 1 / std::sqrt(static_cast<double>(fan_in));
    std::generate_n(values.begin(), count,
                    [&] { return static_cast<float>(bound * (2 * random.uniform() - 1)); });
  }

  // Each channel to its own, by the product of two triangles.
  void interpolate(const TransposedConvolutionParameters& p) {
    const std::size_t outs = p.out / p.groups;
    const auto& [height, width] = p.kernel;
    for (std::size_t c = 0; c < p.in; ++c) {
      float* const kernel = &values[(c * outs + c % outs) * height * width];
      for (std::size_t at = 0; at < height * width; ++at) {
        kernel[at] = static_cast<float>(triangle(at / width, height) * triangle(at % width, width));
      }
    }
  }
};

}  // namespace

std::string name_of(Initialisation rule) {
  switch (rule) {
    case Initialisation::kXavier:
      break;
    case Initialisation::kTorchvision:
      return "torchvision";
    case Initialisation::kTorchvisionResnet:
      return "torchvision-resnet";
    case Initialisation::kTorchvisionDensenet:
      return "torchvision-densenet";
    case Initialisation::kPytorch:
      return "pytorch";
  }
  return "xavier";
}

std::optional<Initialisation> find_initialisation(const std::string& name) {
  const auto* const found =
      std::ranges::find(kRules, name, [](auto rule) { return name_of(rule); });
  if (found == kRules.end()) return std::nullopt;
  return *found;
}

Initialisation usual_initialisation(const std::string& network) {
  constexpr std::array<std::string_view, 9> kOfPhotos{"alexnet",   "overfeat",   "vgg",
                                                      "googlenet", "inception",  "resnet",
                                                      "densenet",  "squeezenet", "fcn"};
  const bool is_of_photos = std::ranges::any_of(
      kOfPhotos, [&](std::string_view family) { return network.starts_with(family); });
  return is_of_photos ? Initialisation::kTorchvision : Initialisation::kXavier;
}

std::vector<float> initial_values(const ParameterSpec& spec, std::uint64_t seed,
                                  std::uint64_t index, Initialisation rule) {
  Draw draw{.rule = rule,
            .random = ParameterRandom{seed, index},
            .values = std::vector<float>(element_count(spec))};
  std::visit(draw, spec);
  return std::move(draw.values);
}

}  // namespace spillway
