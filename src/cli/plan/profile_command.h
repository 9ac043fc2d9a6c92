#pragma once

#include "src/cli/flags/cli11.h"

namespace spillway::cli {

/// Adds `spillway profile`: measures the tasks of a step, and the link, for plans made elsewhere.
void add_profile_command(CLI::App& app);

}  // namespace spillway::cli
