#include "src/cli/flags/comparison_flags.h"

#include <CLI/CLI.hpp>

#include "src/cli/flags/machine_check.h"
#include "src/cli/flags/sweep_lists.h"

namespace spillway::cli {
namespace {

constexpr const char* kComparison = "What is compared";

}  // namespace

void ComparisonFlags::add_to(CLI::App& app) {
  add_sweep_points_to(app);
  add_strategies_to(app);
}

std::vector<Strategy> ComparisonFlags::strategies() const {
  return find_strategies(planners, recompute == "auto");
}

void ComparisonFlags::add_sweep_points_to(CLI::App& app) {
  app.add_option("--budgets", budgets,
                 "Near memory, as for spillway plan but bytes always with their unit, several with "
                 "commas between them; or, from 2 to 1000, how many budgets from the smallest "
                 "feasible to the resident need")
      ->delimiter(',')
      ->check(check_budgets)
      ->capture_default_str()
      ->group(kComparison);
  app.add_option("--machines", machines,
                 "Machines or machine files, with commas between them (default: v100)")
      ->delimiter(',')
      ->check(check_machine)
      ->group(kComparison);
  app.add_option("--links", links, "Speeds of the link as multiples of the machine's: x0.25,x1,x4")
      ->delimiter(',')
      ->check(check_link_factor)
      ->capture_default_str()
      ->group(kComparison);
}

void ComparisonFlags::add_strategies_to(CLI::App& app) {
  app.add_option("--planners", planners,
                 "Strategies, with commas between them, or all; spillway plan --help explains "
                 "them")
      ->delimiter(',')
      ->check(check_planners)
      ->capture_default_str()
      ->group(kComparison);
  app.add_option("--recompute", recompute,
                 "auto: strategies may run layers again where that beats moving; off: never")
      ->check(CLI::IsMember({"auto", "off"}))
      ->capture_default_str()
      ->group(kComparison);
  app.add_option("--memory", memory,
                 "managed: blocks may be moved in parts; copy: whole blocks only, as explicit "
                 "copies do")
      ->check(CLI::IsMember({"managed", "copy"}))
      ->capture_default_str()
      ->group(kComparison);
}

}  // namespace spillway::cli
