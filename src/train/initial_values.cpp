#include "src/train/initial_values.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <numbers>
#include <random>

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

// 1 in the middle of `size` numbers, 0 where the next pixel's triangle has its middle: at a
// distance of half the size, rounded up.
double triangle(std::size_t at, std::size_t size) {
  const std::size_t half = (size + 1) / 2;
  const auto reach = static_cast<double>(half);
  const double middle = (static_cast<double>(size) - 1) / 2;
  return 1 - std::abs(static_cast<double>(at) - middle) / reach;
}

struct Draw {
  ParameterRandom random;
  std::vector<float> values;

  // Leaves what follows the weights, the biases, zero.
  void operator()(const ConvolutionParameters& p) {
    const std::size_t fan_in = p.in / p.groups * p.kernel.height * p.kernel.width;
    draw_normal(p.out * fan_in, fan_in);
  }
  void operator()(const TransposedConvolutionParameters& p) {
    if (p.in == p.out) {
      interpolate(p);
    } else {
      draw_normal(p.in * (p.out / p.groups) * p.kernel.height * p.kernel.width,
                  p.in / p.groups * p.kernel.height * p.kernel.width);
    }
  }
  void operator()(const LinearParameters& p) {
    const std::size_t fan_in = p.in.elements();
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

  void draw_normal(std::size_t count, std::size_t fan_in) {
    const double deviation = std::sqrt(2 / static_cast<double>(fan_in));
    std::generate_n(values.begin(), count,
                    [&] { return static_cast<float>(deviation * random.normal()); });
  }

  void draw_table(std::size_t count) {
    constexpr double kDeviation = 0.02;
    std::generate_n(values.begin(), count,
                    [&] { return static_cast<float>(kDeviation * random.normal()); });
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

std::vector<float> initial_values(const ParameterSpec& spec, std::uint64_t seed,
                                  std::uint64_t index) {
  Draw draw{.random = ParameterRandom{seed, index},
            .values = std::vector<float>(element_count(spec))};
  std::visit(draw, spec);
  return std::move(draw.values);
}

}  // namespace spillway
