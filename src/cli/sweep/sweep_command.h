#pragma once

#include "src/cli/flags/cli11.h"

namespace spillway::cli {

/// Adds `spillway sweep`: plans over budgets, planners and machines; needs no device.
void add_sweep_command(CLI::App& app);

}  // namespace spillway::cli
