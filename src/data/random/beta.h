#pragma once

#include "src/data/random/random.h"

namespace spillway {

/// A number drawn from Beta(alpha, alpha), between 0 and 1, with the same bits on every machine.
/// Requires: 0 < alpha, not infinite.
[[nodiscard]] double drawn_beta(double alpha, Random& random);

}  // namespace spillway
