#pragma once

#include "src/cli/flags/cli11.h"

namespace spillway::cli {

/// Adds `spillway export`: writes a checkpoint's weights under the names of another library.
void add_export_command(CLI::App& app);

}  // namespace spillway::cli
