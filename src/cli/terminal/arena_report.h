#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "src/plan/arena_use.h"

namespace spillway::cli {

/// {"extent_bytes":…,"arena_bytes":…,"fits":…}
[[nodiscard]] nlohmann::json places_json(const ArenaUse& use);

/// For people: "fixed places in 1.20 GiB of 1.25 GiB". `use` is what places_json() gives.
[[nodiscard]] std::string describe_places(const nlohmann::json& use);

}  // namespace spillway::cli
