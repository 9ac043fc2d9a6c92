#pragma once

#include <string>
#include <vector>

#include "nets/network.h"

namespace spillway::nets {

/// The batch norms that residual blocks end with: of each Add, the last one before it, whose sum is
/// read by nothing else. A projection of the shortcut ends with one, too; it is the branch with
/// more layers that counts. Empty where there are none.
[[nodiscard]] std::vector<std::string> residual_norms(const Network& network);

}  // namespace spillway::nets
