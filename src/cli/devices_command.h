#pragma once

#include "src/cli/flags/cli11.h"

namespace spillway::cli {

/// `spillway devices`: what was found, what it can do, and why not more.
void add_devices_command(CLI::App& app);

}  // namespace spillway::cli
