#pragma once

#include <CLI/CLI.hpp>

namespace spillway::cli {

/// Adds `spillway bench` and its subcommands, one a bench.
void add_bench_command(CLI::App& app);

}  // namespace spillway::cli
