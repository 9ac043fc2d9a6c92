#pragma once

#include "src/cli/flags/cli11.h"

namespace spillway::cli {

/// `spillway sweep`: plans over budgets, planners and machines, or the whole of suite S; needs no
/// device.
void add_sweep_command(CLI::App& app);

}  // namespace spillway::cli
