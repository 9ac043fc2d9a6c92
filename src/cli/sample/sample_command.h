#pragma once

#include "src/cli/flags/cli11.h"

namespace spillway::cli {

/// Adds `spillway sample`: continues a text with a network that was trained on text.
void add_sample_command(CLI::App& app);

}  // namespace spillway::cli
