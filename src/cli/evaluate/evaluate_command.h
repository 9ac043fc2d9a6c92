#pragma once

#include "src/cli/flags/cli11.h"

namespace spillway::cli {

/// Adds `spillway evaluate`: prints loss and accuracy of a checkpoint on a data set.
void add_evaluate_command(CLI::App& app);

}  // namespace spillway::cli
