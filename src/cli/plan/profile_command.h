#pragma once

#include "src/cli/flags/cli11.h"

namespace spillway::cli {

/// `spillway profile`: measures a step, task by task, and the link, for plans made elsewhere.
void add_profile_command(CLI::App& app);

}  // namespace spillway::cli
