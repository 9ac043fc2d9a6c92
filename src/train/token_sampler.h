#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "src/io/random.h"

namespace spillway {

/// Options for drawing the next token.
struct SamplingOptions {
  /// Divides the logits: below 1 likely tokens become likelier. 0: always the likeliest.
  double temperature = 1;
  std::size_t top_k = 0;  ///< draws among the `top_k` likeliest; 0: among all
  std::uint64_t seed = 1;
};

/// Draws tokens, reproducibly: equal seeds and logits give equal tokens.
///
/// Thread safety: none.
class TokenSampler {
 public:
  /// Requires: the temperature is finite and not negative.
  explicit TokenSampler(const SamplingOptions& options);

  /// Returns the index of a logit among the top_k largest, drawn with the probability of
  /// softmax(logits / temperature). Of equal logits the first is the larger. Requires: at least
  /// one.
  /// Throws: um::Error when a logit is not finite. Complexity: O(n log n).
  [[nodiscard]] std::int32_t draw(std::span<const float> logits);

 private:
  SamplingOptions options_;
  Random random_;
  std::vector<std::size_t> candidates_;  // of the current draw, likeliest first
  std::vector<double> weights_;          // of the candidates
};

}  // namespace spillway
