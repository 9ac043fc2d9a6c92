#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "src/bench/train/train_strategy.h"
#include "src/cli/bench/bench_subcommand.h"
#include "src/cli/bench/bench_training.h"
#include "src/cli/bench/bench_training_flags.h"
#include "src/cli/flags/complaint.h"
#include "src/cli/flags/number_checks.h"
#include "src/cli/flags/plan_flags.h"

namespace spillway::cli {
namespace {

struct TrainFlags {
  BenchTrainingFlags flags{.budgets = {"100%", "60%", "40%", "25%"}};
  std::vector<std::size_t> batches;  // empty: around the network's
  std::string budget;                // of the series over batches; empty: memory ends at its middle
  std::vector<std::string> strategies{"on-demand", "capacity", "joint", "copy"};
  std::vector<std::string> planners;  // further ones
  std::vector<std::string> plans;     // files, of the series over budgets
};

std::string check_strategy(const std::string& name) {
  return complaint_of([&] { static_cast<void>(find_train_strategy(name)); });
}

std::string check_plan(const std::string& text) {
  return complaint_of([&] { static_cast<void>(plan_file_strategy(text)); });
}

std::vector<TrainStrategy> strategies_of(const TrainFlags& options) {
  std::vector<TrainStrategy> found;
  for (const auto* names : {&options.strategies, &options.planners}) {
    for (const std::string& name : *names) {
      const TrainStrategy strategy = find_train_strategy(name);
      if (std::ranges::find(found, strategy) == found.end()) found.push_back(strategy);
    }
  }
  return found;
}

std::vector<std::size_t> batches_of(const TrainFlags& options, std::size_t batch) {
  if (options.batches.empty()) return batches_around(batch, options.flags.quick);
  const std::set<std::size_t> ascending{options.batches.begin(), options.batches.end()};
  return {ascending.begin(), ascending.end()};
}

// Which of `batches` near memory is to end at, where the user gives no budget: at the network's
// own, or in the middle of those that the user gives.
std::size_t middle_of(const TrainFlags& options, std::size_t batch,
                      const std::vector<std::size_t>& batches) {
  if (!options.batches.empty()) return batches.size() / 2;
  return static_cast<std::size_t>(std::ranges::find(batches, batch) - batches.begin());
}

void add_rows(const TrainFlags& options, const NetAtBatch& at, BenchTraining& bench) {
  std::vector<TrainStrategy> strategies = strategies_of(options);
  std::vector<const TrainSubject*> subjects;
  std::vector<prefetch::NearNeed> needs;
  const std::vector<std::size_t> batches = batches_of(options, at.batch);
  for (const std::size_t batch : batches) {
    subjects.push_back(&bench.subject({.net = at.net, .batch = batch}));
    needs.push_back(subjects.back()->workload().need());
  }
  const TrainSubject& fixed = bench.subject(at);
  const um::Bytes middle = budget_at_middle(needs, middle_of(options, at.batch, batches));
  const NamedBudget budget = options.budget.empty()
                                 ? NamedBudget{.text = um::to_string(middle), .size = middle}
                                 : bench.resolve(options.budget, fixed);
  add_batch_series(bench.comparison(), subjects, strategies, budget);
  for (const std::string& text : options.plans) strategies.push_back(plan_file_strategy(text));
  add_budget_series(bench.comparison(), TrainSeries::kBudget, fixed, strategies,
                    bench.resolve(options.flags.budgets, fixed));
}

void bench_train(TrainFlags& options, const CLI::App& command) {
  options.flags.complete(command);
  BenchTraining bench{options.flags, "train"};
  for (const NetAtBatch& at : options.flags.networks()) add_rows(options, at, bench);
  nlohmann::json used = options.flags.options(command);
  used["strategies"] = options.strategies;
  used["planners"] = options.planners;
  used["plan"] = options.plans;
  bench.run(std::move(used));
}

void add_comparison_to(CLI::App& command, TrainFlags& options) {
  command
      .add_option(
          "--batches", options.batches,
          "Batch sizes of the series over batch sizes, separated by commas (default: from a "
          "quarter to twice the network's)")
      ->delimiter(',')
      ->check(check_whole_number)
      ->check(CLI::Range(kBatchRange.least, kBatchRange.most))
      ->group(BenchTrainingFlags::kComparison);
  command
      .add_option(
          "--budget", options.budget,
          "Budget of the series over batch sizes, as for spillway train (default: less than "
          "the resident need at the network's batch size, or at the middle of --batches)")
      ->check(check_budget)
      ->group(BenchTrainingFlags::kComparison);
  command
      .add_option(
          "--strategies", options.strategies,
          "Compared with the resident run: planners with unified memory, and copy, which is "
          "the joint planner with explicit copies")
      ->delimiter(',')
      ->check(check_strategy)
      ->capture_default_str()
      ->group(BenchTrainingFlags::kComparison);
  command
      .add_option(
          "--planners", options.planners,
          "More planners to compare, e.g. vdnn-all,modnn,superneurons; spillway plan --help "
          "explains them")
      ->delimiter(',')
      ->check(check_strategy)
      ->group(BenchTrainingFlags::kComparison);
  command
      .add_option("--plan", options.plans,
                  "Plans to compare at the network's batch size, from files that spillway plan "
                  "--out wrote, separated by commas: FILE over unified memory, copy:FILE with "
                  "explicit copies; of steps whose weights and optimizer state stay near")
      ->delimiter(',')
      ->check(check_plan)
      ->group(BenchTrainingFlags::kComparison);
}

}  // namespace

void add_bench_train(CLI::App& bench) {
  const auto [command, options] = add_bench_subcommand<TrainFlags>(
      bench, "train", "Measure training steps against batch size and against budget", bench_train);
  options.flags.add_to(command);
  add_comparison_to(command, options);
  command.footer(
      "All runs of a network share one profile and take turns. The exit status is 1, after all\n"
      "output, if near memory exceeded a budget or a loss differs from the resident run's.\n"
      "Example: spillway bench train --net resnet50:16 --link-bandwidth 2GB/s --json train.json\n"
      "Example: spillway bench train --net resnet18:32,vgg16:4 --budgets min+50%,min+20% "
      "--planners "
      "vdnn-all,modnn");
}

}  // namespace spillway::cli
