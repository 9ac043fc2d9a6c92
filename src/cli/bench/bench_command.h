#pragma once

#include <CLI/CLI.hpp>
#include <cstddef>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "src/bench/repetition.h"

namespace spillway::cli {

/// The flags that all benches have: --json, --quick, and how often each figure is measured. What
/// they are set to before add_to() are the defaults.
struct BenchFlags {
  std::string json;
  bool quick = false;  ///< small sizes and few runs, to see that it works
  std::size_t repeats = 30;
  double deviation = 0.03;
  double seconds = 1;

  void add_to(CLI::App& command);

  /// With --quick, at most two runs count, and none begins after a tenth of a second.
  [[nodiscard]] Repetition repetition() const;
};

/// The flags of `command` as a bench file keeps them: by name without dashes, as given or else
/// their defaults; numbers as numbers.
[[nodiscard]] nlohmann::json flags_json(const CLI::App& command);

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

/// Adds `spillway bench` and its subcommands, one a bench.
void add_bench_command(CLI::App& app);

}  // namespace spillway::cli
