#pragma once

namespace CLI {
class App;
}  // namespace CLI

namespace spillway::cli {

/// Adds `spillway checkpoint`, what can be done with the checkpoints in a folder.
void add_checkpoint_command(CLI::App& app);

}  // namespace spillway::cli
