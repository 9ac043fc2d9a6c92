#pragma once

#include <CLI/CLI.hpp>

namespace spillway::cli {

/// Adds `spillway bench link` to `bench`.
void add_bench_link(CLI::App& bench);

}  // namespace spillway::cli
