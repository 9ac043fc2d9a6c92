#pragma once

#include <CLI/CLI.hpp>

namespace spillway::cli {

/// Adds `spillway document`: prints the manual page or a shell's completions, which cmake --install
/// installs. Both are made from the subcommands of `app`.
void add_document_command(CLI::App& app);

}  // namespace spillway::cli
