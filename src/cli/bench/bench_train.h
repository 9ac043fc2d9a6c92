#pragma once

#include <CLI/CLI.hpp>

namespace spillway::cli {

/// Adds `spillway bench train` to `bench`.
void add_bench_train(CLI::App& bench);

}  // namespace spillway::cli
