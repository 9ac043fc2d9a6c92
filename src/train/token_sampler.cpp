#include "src/train/token_sampler.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "um/error.h"

namespace spillway {
namespace {

// Uniform in [0, 1), with all bits of a double.
double uniform(Random& random) {
  return std::ldexp(static_cast<double>(random.next() >> 11U), -53);
}

}  // namespace

TokenSampler::TokenSampler(const SamplingOptions& options)
    : options_{options}, random_{options.seed} {
  um::expects(std::isfinite(options.temperature) && options.temperature >= 0,
              "a temperature from 0 up");
}

std::int32_t TokenSampler::draw(std::span<const float> logits) {
  um::expects(!logits.empty(), "tokens to choose from");
  if (!std::ranges::all_of(logits, [](float logit) { return std::isfinite(logit); })) {
    throw um::Error{"the network's logits are not finite: its training has diverged"};
  }
  if (options_.temperature == 0) {
    return static_cast<std::int32_t>(std::ranges::max_element(logits) - logits.begin());
  }
  const std::size_t count =
      options_.top_k == 0 ? logits.size() : std::min(options_.top_k, logits.size());
  candidates_.resize(logits.size());
  std::iota(candidates_.begin(), candidates_.end(), std::size_t{0});
  std::ranges::partial_sort(candidates_, candidates_.begin() + static_cast<std::ptrdiff_t>(count),
                            [&](std::size_t a, std::size_t b) {
                              return logits[a] > logits[b] || (logits[a] == logits[b] && a < b);
                            });
  const auto largest = static_cast<double>(logits[candidates_.front()]);
  weights_.clear();
  for (std::size_t i = 0; i < count; ++i) {
    const auto logit = static_cast<double>(logits[candidates_[i]]);
    weights_.push_back(std::exp((logit - largest) / options_.temperature));
  }
  double rest = uniform(random_) * std::accumulate(weights_.begin(), weights_.end(), 0.0);
  std::size_t chosen = 0;
  while (chosen + 1 < count && rest >= weights_[chosen]) rest -= weights_[chosen++];
  return static_cast<std::int32_t>(candidates_[chosen]);
}

}  // namespace spillway
