#pragma once

#include <string>
#include <vector>

#include "src/cli/flags/cli11.h"
#include "src/sweep/sweep.h"

namespace CLI {
class App;
}  // namespace CLI

namespace spillway::cli {

/// The flags that say what a sweep compares: --budgets, --planners, --machines, --links,
/// --recompute, --memory.
struct ComparisonFlags {
  std::vector<std::string> budgets{"12"};
  std::vector<std::string> planners{"all"};
  std::vector<std::string> machines;  ///< empty: as the user did not say
  std::vector<std::string> links{"x1"};
  std::string recompute = "auto";
  std::string memory = "managed";

  void add_to(CLI::App& app);

  [[nodiscard]] std::vector<Strategy> strategies() const;

 private:
  void add_sweep_points_to(CLI::App& app);
  void add_strategies_to(CLI::App& app);
};

}  // namespace spillway::cli
