#pragma once

#include "src/cli/flags/cli11.h"

namespace spillway::cli {

/// Adds `spillway devices`: lists devices, their capabilities, and why others cannot be used.
void add_devices_command(CLI::App& app);

}  // namespace spillway::cli
