#pragma once

#include <cmath>
#include <cstddef>
#include <vector>

namespace spillway {

/// Cosines and sines of the angles by which rotary embeddings turn pair j of token t's numbers:
/// t base^(-j / pairs) (Su et al., 2021). Token by token, (tokens, pairs).
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
