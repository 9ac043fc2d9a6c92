#pragma once

#include <nlohmann/json.hpp>

namespace spillway {

/// The rows of `bench train` or `bench planners` without those that tell of a run that one before
/// them tells of: the same network, image size, batch, strategy and budget in two series, and the
/// resident run, which has no budget, wherever it stands. A row that says why a run is none of its
/// series ("more than the budget") tells of a case of its own.
[[nodiscard]] nlohmann::json distinct_runs(const nlohmann::json& rows);

}  // namespace spillway
