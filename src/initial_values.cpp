#include "src/initial_values.h"

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

struct Draw {
  ParameterRandom random;
  std::vector<float> values;

  // Leaves what follows the weights, the biases, zero.
  void operator()(const ConvolutionParameters& p) {
    const std::size_t fan_in = p.in / p.groups * p.kernel.height * p.kernel.width;
    const double deviation = std::sqrt(2 / static_cast<double>(fan_in));
    std::generate_n(values.begin(), p.out * fan_in,
                    [&] { return static_cast<float>(deviation * random.normal()); });
  }
  void operator()(const LinearParameters& p) {
    const std::size_t fan_in = p.in.elements();
    const double bound = std::sqrt(6 / static_cast<double>(fan_in + p.out));
    std::generate_n(values.begin(), p.out * fan_in,
                    [&] { return static_cast<float>(bound * (2 * random.uniform() - 1)); });
  }
  void operator()(const BatchNormParameters& p) { std::fill_n(values.begin(), p.channels, 1.F); }
  void operator()(const BatchNormStatistics& p) { std::fill_n(values.rbegin(), p.channels, 1.F); }
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
