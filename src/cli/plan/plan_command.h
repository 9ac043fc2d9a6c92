#pragma once

#include "src/cli/flags/cli11.h"

namespace spillway::cli {

/// Adds `spillway plan`: plans, verifies and simulates a step; needs no device.
void add_plan_command(CLI::App& app);

}  // namespace spillway::cli
