#pragma once

#include <CLI/CLI.hpp>
#include <string>

namespace spillway::cli {

/// The manual page of `app`, as roff: each subcommand with its options and examples.
[[nodiscard]] std::string man_page(const CLI::App& app);

}  // namespace spillway::cli
