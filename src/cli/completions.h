#pragma once

#include <CLI/CLI.hpp>
#include <string>

namespace spillway::cli {

/// A script for bash that completes subcommands, options and their values, which are names of
/// networks, planners and machines, and the words that an option lists.
[[nodiscard]] std::string bash_completions(const CLI::App& app);

/// The same for zsh.
[[nodiscard]] std::string zsh_completions(const CLI::App& app);

}  // namespace spillway::cli
