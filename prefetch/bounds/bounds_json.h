#pragma once

#include <nlohmann/json.hpp>

#include "prefetch/bounds/bounds.h"

namespace spillway::prefetch {

/// The bounds in seconds, by name: what `plan --json` and `sweep --json` say.
[[nodiscard]] nlohmann::json to_json(const Bounds& bounds);

}  // namespace spillway::prefetch
