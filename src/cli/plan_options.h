#pragma once

#include <CLI/CLI.hpp>
#include <string>

#include "src/plans.h"

namespace spillway::cli {

/// The flags that say how to plan: --budget, --planner, --recompute.
struct PlanOptions {
  std::string budget = "auto";
  std::string planner = "capacity";
  std::string recompute = "auto";

  void add_to(CLI::App& app);

  /// Throws: um::Error when there is no such planner.
  [[nodiscard]] PlanRequest request(MemoryMode memory) const;
};

}  // namespace spillway::cli
