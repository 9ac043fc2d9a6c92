#pragma once

#include <cmath>
#include <cstddef>
#include <vector>

namespace spillway {

/// Cosines and sines of the angles of rotary embeddings (Su et al., 2021). The angle for token t
/// and pair j is t base^(-j / pairs). Shape: (tokens, pairs).
struct RotaryAngles {
  RotaryAngles(std::size_t tokens, std::size_t pairs, float base) {
    for (std::size_t t = 0; t < tokens; ++t) {
      for (std::size_t j = 0; j < pairs; ++j) {
        const double exponent = -static_cast<double>(j) / static_cast<double>(pairs);
        const double angle = static_cast<double>(t) * std::pow(static_cast<double>(base), exponent);
        cosines.push_back(static_cast<float>(std::cos(angle)));
        sines.push_back(static_cast<float>(std::sin(angle)));
      }
    }
  }
  std::vector<float> cosines;
  std::vector<float> sines;
};

}  // namespace spillway
