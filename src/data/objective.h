#pragma once

#include <cstddef>
#include <cstdint>

#include "nets/network.h"

namespace spillway {

/// What a network of texts learns.
enum class Objective : std::uint8_t {
  kNextToken,    ///< from each token, and those before it, the one behind it
  kMaskedTokens  ///< tokens that are hidden, from all the others (Devlin et al., 2018)
};

/// Masked tokens where a token sees those behind it: with an attention that is not causal.
[[nodiscard]] Objective objective_of(const nets::Network& network);

}  // namespace spillway
