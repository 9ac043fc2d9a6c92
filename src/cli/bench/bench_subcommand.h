#pragma once

#include <CLI/CLI.hpp>
#include <memory>
#include <string>

namespace spillway::cli {

/// A bench as its flags are declared; CLI11 keeps both members.
template <typename Options>
struct BenchSubcommand {
  CLI::App& command;
  Options& options;
};

/// Adds `name` to `bench`, with options of its own; when the user asks for it, `run(options,
/// command)` is called, for which `run` is copied.
template <typename Options, typename Run>
[[nodiscard]] BenchSubcommand<Options> add_bench_subcommand(CLI::App& bench,
                                                            const std::string& name,
                                                            const std::string& description,
                                                            const Run& run) {
  CLI::App* const command = bench.add_subcommand(name, description);
  const auto options = std::make_shared<Options>();  // shared: the callback keeps it
  command->callback([options, command, run] { run(*options, *command); });
  return {.command = *command, .options = *options};
}

/// Each adds `spillway bench NAME` to `bench`.
void add_bench_link(CLI::App& bench);
void add_bench_paging(CLI::App& bench);
void add_bench_planners(CLI::App& bench);
void add_bench_train(CLI::App& bench);

}  // namespace spillway::cli
