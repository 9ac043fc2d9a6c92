#pragma once

#include <CLI/CLI.hpp>

namespace spillway::cli {

/// Adds `spillway bench planners` to `bench`.
void add_bench_planners(CLI::App& bench);

}  // namespace spillway::cli
