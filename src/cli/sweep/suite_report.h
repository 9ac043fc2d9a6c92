#pragma once

#include <nlohmann/json.hpp>

#include "src/cli/sweep/suite_run.h"

namespace spillway::cli {

/// Prints the worst points of each network and machine, then the goals.
void print_suite(const SuiteResult& result);

/// {"goals": {"G1": {"value": …, "goal": …, "met": …}, …}, "points": […], "algorithm_points": […],
/// "large_points": […]}.
[[nodiscard]] nlohmann::json to_json(const SuiteResult& result);

}  // namespace spillway::cli
