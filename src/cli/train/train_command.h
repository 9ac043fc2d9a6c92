#pragma once

#include "src/cli/flags/cli11.h"

namespace spillway::cli {

/// Adds `spillway train`: trains a network within a memory budget.
void add_train_command(CLI::App& app);

}  // namespace spillway::cli
