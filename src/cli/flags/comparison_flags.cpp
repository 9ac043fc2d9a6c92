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
  app.add_option(
         "--budgets", budgets,
         "Budgets as for spillway plan, separated by commas, bytes with their unit; or a number "
         "from 2 to 1000 of budgets between the smallest feasible and the resident need")
      ->delimiter(',')
      ->check(check_budgets)
      ->capture_default_str()
      ->group(kComparison);
  app.add_option("--machines", machines,
                 "Machines or machine files, separated by commas (default: v100)")
      ->delimiter(',')
      ->check(check_machine)
      ->group(kComparison);
  app.add_option("--links", links, "Link bandwidths as multiples of the machine's: x0.25,x1,x4")
      ->delimiter(',')
      ->check(check_link_factor)
      ->capture_default_str()
      ->group(kComparison);
}

void ComparisonFlags::add_strategies_to(CLI::App& app) {
  app.add_option("--planners", planners,
                 "Planners, separated by commas, or all; spillway plan --help explains them")
      ->delimiter(',')
      ->check(check_planners)
      ->capture_default_str()
      ->group(kComparison);
  app.add_option("--recompute", recompute, "auto: planners may recompute layers; off: never")
      ->check(CLI::IsMember({"auto", "off"}))
      ->capture_default_str()
      ->group(kComparison);
  app.add_option("--memory", memory,
                 "managed: plans may move parts of blocks; copy: whole blocks only, as explicit "
                 "copies do")
      ->check(CLI::IsMember({"managed", "copy"}))
      ->capture_default_str()
      ->group(kComparison);
}

}  // namespace spillway::cli
