#pragma once

#include <CLI/CLI.hpp>

namespace spillway::cli {

/// Adds `spillway report`: makes an HTML page from measurements, plans and timelines; needs no
/// device.
void add_report_command(CLI::App& app);

}  // namespace spillway::cli
