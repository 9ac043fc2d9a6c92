#pragma once

#include <CLI/CLI.hpp>

namespace spillway::cli {

/// Adds `spillway checkpoint`, which inspects the checkpoints in a folder.
void add_checkpoint_command(CLI::App& app);

}  // namespace spillway::cli
