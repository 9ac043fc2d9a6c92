#pragma once

#include "src/cli/flags/cli11.h"

namespace spillway::cli {

/// `spillway export`: writes the weights of a checkpoint by the names of another library.
void add_export_command(CLI::App& app);

}  // namespace spillway::cli
