#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "src/io/random.h"

namespace spillway {

/// How the next token is drawn.
struct SamplingOptions {
  /// Logits are divided by it: below 1 likely tokens are still likelier. 0: always the likeliest.
  double temperature = 1;
  std::size_t top_k = 0;  ///< only among so many of the likeliest; 0: among all
  std::uint64_t seed = 1;
};

/// Draws tokens, always the same ones from the same logits.
///
/// Thread safety: none.
class TokenSampler {
 public:
  /// Requires: the temperature is finite and not negative.
  explicit TokenSampler(const SamplingOptions& options);

  /// The number of one of the logits, each with the probability of softmax(logits / temperature)
  /// among the top_k largest. Of equal logits the first is the larger. Requires: at least one.
  /// Throws: um::Error when a logit is not finite. Complexity: O(n log n).
  [[nodiscard]] std::int32_t draw(std::span<const float> logits);

 private:
  SamplingOptions options_;
  Random random_;
  std::vector<std::size_t> candidates_;  // of the current draw, the likeliest first
  std::vector<double> weights_;          // theirs
};

}  // namespace spillway
