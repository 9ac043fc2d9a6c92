#pragma once

#include <string>
#include <vector>

#include "prefetch/files/machine.h"
#include "prefetch/planner.h"
#include "src/cli/flags/cli11.h"
#include "src/sweep/sweep.h"
#include "um/bytes.h"

namespace spillway::cli {

/// Complains about what is neither a budget, bytes being given with their unit, nor a number of
/// budgets; a check of CLI11's.
[[nodiscard]] std::string check_budgets(const std::string& text);

/// Throws: CLI::ValidationError where a number without unit stands beside other budgets: it might
/// be bytes, or so many budgets.
void expect_budgets(const std::vector<std::string>& list);

/// The budgets of a list: each by itself, or, where it is one whole number from 2 to 1000, so many
/// from the smallest feasible one to the resident need. `available` is the machine's near memory.
[[nodiscard]] std::vector<um::Bytes> resolve_budgets(const std::vector<std::string>& list,
                                                     const prefetch::NearNeed& need,
                                                     um::Bytes available);

/// Complains about what is neither a planner nor "all"; a check of CLI11's.
[[nodiscard]] std::string check_planners(const std::string& text);

/// The planners of a list, once each; "all" stands for all there are.
[[nodiscard]] std::vector<Strategy> find_strategies(const std::vector<std::string>& list,
                                                    bool may_recompute);

/// Complains about what is no factor such as x4 or x0.25; a check of CLI11's.
[[nodiscard]] std::string check_link_factor(const std::string& text);
[[nodiscard]] double parse_link_factor(const std::string& text);

[[nodiscard]] std::vector<prefetch::Machine> find_machines(const std::vector<std::string>& list);

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
