#pragma once

#include "src/cli/flags/cli11.h"

namespace spillway::cli {

/// Adds `spillway nets`: lists parameters, activation bytes and smallest feasible budgets of the
/// built-in networks.
void add_nets_command(CLI::App& app);

}  // namespace spillway::cli
