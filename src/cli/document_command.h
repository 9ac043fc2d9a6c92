#pragma once

#include <CLI/CLI.hpp>

namespace spillway::cli {

/// `spillway document`: prints the manual page or a shell's completions, which cmake --install
/// installs. Both are made from what the subcommands of `app` declare.
void add_document_command(CLI::App& app);

}  // namespace spillway::cli
