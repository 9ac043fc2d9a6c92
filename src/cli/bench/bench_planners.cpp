#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "src/bench/train/train_strategy.h"
#include "src/cli/bench/bench_subcommand.h"
#include "src/cli/bench/bench_training.h"
#include "src/cli/bench/bench_training_flags.h"
#include "src/cli/flags/sweep_lists.h"

namespace spillway::cli {
namespace {

struct PlannersFlags {
  BenchTrainingFlags flags{.budgets = {"60%", "40%", "25%"}};
  std::vector<std::string> planners{"all"};
};

std::vector<TrainStrategy> planners_of(const PlannersFlags& options) {
  std::vector<TrainStrategy> strategies;
  for (const Strategy& each : find_strategies(options.planners, true)) {
    strategies.push_back(planner_strategy(each.planner->name(), options.flags.memory.mode()));
  }
  return strategies;
}

void bench_planners(PlannersFlags& options, const CLI::App& command) {
  options.flags.complete(command);
  BenchTraining bench{options.flags, "planners"};
  const std::vector<TrainStrategy> strategies = planners_of(options);
  for (const NetAtBatch& at : options.flags.networks()) {
    const TrainSubject& subject = bench.subject(at);
    add_budget_series(bench.comparison(), TrainSeries::kPlanner, subject, strategies,
                      bench.resolve(options.flags.budgets, subject));
  }
  nlohmann::json used = options.flags.options(command);
  used["planners"] = options.planners;
  bench.run(std::move(used));
}

void add_planners_to(CLI::App& command, PlannersFlags& options) {
  command
      .add_option("--planners", options.planners,
                  "Planners, separated by commas, or all; spillway plan --help explains them")
      ->delimiter(',')
      ->check(check_planners)
      ->capture_default_str()
      ->group(BenchTrainingFlags::kComparison);
  command
      .add_option("--memory", options.flags.memory.memory,
                  "managed: unified memory with hints; copy: explicit copies of whole blocks")
      ->check(CLI::IsMember({"managed", "copy"}))
      ->capture_default_str()
      ->group(BenchTrainingFlags::kComparison);
}

}  // namespace

void add_bench_planners(CLI::App& bench) {
  const auto [command, options] = add_bench_subcommand<PlannersFlags>(
      bench, "planners", "Measure training steps of every planner at several budgets",
      bench_planners);
  options.flags.add_to(command);
  add_planners_to(command, options);
  command.footer(
      "The row of a planner that has no plan for a budget says why.\n"
      "Example: spillway bench planners --net resnet50:16 --budgets 60%,40% --json planners.json");
}

}  // namespace spillway::cli
