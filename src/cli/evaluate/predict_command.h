#pragma once

#include "src/cli/flags/cli11.h"

namespace spillway::cli {

/// `spillway predict`: what a checkpoint says each image of a data set is.
void add_predict_command(CLI::App& app);

}  // namespace spillway::cli
