#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace spillway {

/// What a checked file of "spillway-bench" says, in a few sentences computed from its rows, the
/// most important first; empty where nothing was measured.
[[nodiscard]] std::vector<std::string> verdict(const nlohmann::json& bench);

}  // namespace spillway
