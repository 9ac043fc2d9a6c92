#pragma once

#include "src/cli/flags/cli11.h"

namespace spillway::cli {

/// Adds `spillway train`: trains a network within a memory budget.
void add_train_command(CLI::App& app);

/// Adds `spillway evaluate`: prints loss and accuracy of a checkpoint on a data set.
void add_evaluate_command(CLI::App& app);

/// Adds `spillway predict`: prints the class that a checkpoint predicts for each image.
void add_predict_command(CLI::App& app);

/// Adds `spillway sample`: continues a text with a network that was trained on text.
void add_sample_command(CLI::App& app);

/// Adds `spillway plan`: plans, verifies and simulates a step; needs no device.
void add_plan_command(CLI::App& app);

/// Adds `spillway sweep`: plans over budgets, planners and machines; needs no device.
void add_sweep_command(CLI::App& app);

/// Adds `spillway profile`: measures the tasks of a step, and the link, for plans made elsewhere.
void add_profile_command(CLI::App& app);

/// Adds `spillway report`: makes an HTML page from measurements, plans and timelines; needs no
/// device.
void add_report_command(CLI::App& app);

/// Adds `spillway checkpoint`, which inspects the checkpoints in a folder.
void add_checkpoint_command(CLI::App& app);

/// Adds `spillway cache`, which shows and clears the measured times that trainings keep.
void add_cache_command(CLI::App& app);

/// Adds `spillway export`: writes a checkpoint's weights under the names of another library.
void add_export_command(CLI::App& app);

/// Adds `spillway nets`: lists parameters, activation bytes and smallest feasible budgets of the
/// built-in networks.
void add_nets_command(CLI::App& app);

/// Adds `spillway devices`: lists devices, their capabilities, and why others cannot be used.
void add_devices_command(CLI::App& app);

/// Adds `spillway document`: prints the manual page or a shell's completions, which cmake --install
/// installs. Both are made from the subcommands of `app`.
void add_document_command(CLI::App& app);

}  // namespace spillway::cli
