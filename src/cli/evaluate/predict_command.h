#pragma once

#include "src/cli/flags/cli11.h"

namespace spillway::cli {

/// Adds `spillway predict`: prints the class that a checkpoint predicts for each image.
void add_predict_command(CLI::App& app);

}  // namespace spillway::cli
