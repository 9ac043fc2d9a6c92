#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "src/cli/flags/cli11.h"

namespace spillway::cli {

/// The flags that say where the points of a sweep go: --json, --plot and their kin.
struct SweepOutput {
  std::string json;
  std::string plot;
  std::string plot_of;
  bool memory_curves = false;

  void add_to(CLI::App& app);

  /// Throws: um::Error when a file cannot be written or there is nothing to draw with.
  void expect_possible() const;

  /// True when standard output is for programs.
  [[nodiscard]] bool is_on_standard_output() const { return json == "-"; }
  /// True when it takes each point's near memory, task by task.
  [[nodiscard]] bool wants_memory() const { return memory_curves || plot_of == "memory"; }

  /// Writes and draws what is asked for; draws nothing where there are no points.
  void write(const nlohmann::json& sweep) const;
};

}  // namespace spillway::cli
