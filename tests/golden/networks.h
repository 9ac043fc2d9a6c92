#pragma once

#include <string_view>

#include "nets/network.h"

namespace spillway::test {

/// The network of a golden file, "chain", "residual", "branches" or "joined": the same as in
/// tools/golden/networks.py, where they are described.
[[nodiscard]] nets::Network golden_network(std::string_view name);

}  // namespace spillway::test
