#pragma once

#include <string>
#include <vector>

#include "prefetch/files/json.h"

namespace spillway {

/// What a checked file of "spillway-bench" says, in a few sentences computed from its rows, the
/// most important first; empty where nothing was measured.
[[nodiscard]] std::vector<std::string> verdict(const prefetch::JsonView& bench);

}  // namespace spillway
