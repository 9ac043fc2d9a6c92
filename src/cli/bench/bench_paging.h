#pragma once

#include <CLI/CLI.hpp>

namespace spillway::cli {

/// Adds `spillway bench paging` to `bench`.
void add_bench_paging(CLI::App& bench);

}  // namespace spillway::cli
