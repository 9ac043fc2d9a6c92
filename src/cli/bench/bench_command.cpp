#include "src/cli/bench/bench_command.h"

#include "src/cli/bench/bench_subcommand.h"

namespace spillway::cli {

void add_bench_command(CLI::App& app) {
  CLI::App* const command =
      app.add_subcommand("bench", "Measure this machine's memory, link and training steps");
  command->require_subcommand(1);
  add_bench_link(*command);
  add_bench_paging(*command);
  add_bench_train(*command);
  add_bench_planners(*command);
  command->footer(
      "Each figure is the median of repeated runs. spillway report shows the files of --json.\n"
      "Example: spillway bench link --json link.json\n"
      "Example: spillway bench paging --json paging.json\n"
      "Example: spillway bench train --json train.json\n"
      "Example: spillway bench planners --json planners.json");
}

}  // namespace spillway::cli
