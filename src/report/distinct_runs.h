#pragma once

#include <cstddef>
#include <nlohmann/json.hpp>
#include <vector>

namespace spillway {

/// Which rows of `bench train` or `bench planners` tell of a run that none before them tells of.
/// One run is the same network, image size, batch, strategy and budget in two series, and the
/// resident run, which has no budget, wherever it stands. A row that says why a run is none of its
/// series ("more than the budget") tells of a case of its own.
[[nodiscard]] std::vector<std::size_t> distinct_runs(const nlohmann::json& rows);

}  // namespace spillway
