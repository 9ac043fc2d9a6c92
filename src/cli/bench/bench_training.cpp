#include <fmt/core.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <set>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

#include "src/bench/train/train_comparison.h"
#include "src/bench/train/train_strategy.h"
#include "src/cli/bench/bench_command.h"
#include "src/cli/bench/bench_output.h"
#include "src/cli/bench/bench_training_flags.h"
#include "src/cli/flags/flag_values.h"
#include "src/cli/flags/output_path.h"
#include "src/cli/flags/plan_flags.h"
#include "src/cli/flags/sweep_flags.h"
#include "src/cli/terminal/terminal.h"
#include "src/ops/backend.h"
#include "src/plan/budget.h"
#include "um/bytes.h"
#include "um/error.h"
#include "um/machine/available_memory.h"

namespace spillway::cli {
namespace {

using um::Bytes;

/// A bench of trainings, from its flags to its file: the command adds rows to the comparison and
/// runs it.
class BenchTraining {
 public:
  /// `flags` must outlive it. `bench` is "train" or "planners". Throws: um::Error when the device
  /// is not there, or an output cannot be written.
  BenchTraining(const BenchTrainingFlags& flags, const std::string& bench);

  [[nodiscard]] TrainComparison& comparison() { return comparison_; }
  /// Returns the subject for `at`, made at the first call. Throws: um::Error when there is no such
  /// network.
  [[nodiscard]] const TrainSubject& subject(const NetAtBatch& at);
  /// A budget that is checked, for `subject`.
  [[nodiscard]] NamedBudget resolve(const std::string& budget, const TrainSubject& subject) const;
  [[nodiscard]] std::vector<NamedBudget> resolve(const std::vector<std::string>& budgets,
                                                 const TrainSubject& subject) const;

  /// Measures, prints the table, writes the file with `options` and the timelines of the networks
  /// at their batches; when interrupted or failing, with the rows so far.
  /// Throws: um::Error where it does not fit the machine, or what was measured broke a budget or
  /// changed losses; Interrupted.
  void run(nlohmann::json options);

 private:
  [[nodiscard]] TrainRoom room() const;
  void report(nlohmann::json options);
  void expect_run_checks() const;
  void expect_reached() const;

  const BenchTrainingFlags& flags_;
  ExecutionContext context_;
  bool is_host_;
  um::Bytes available_;  // near memory
  BenchOutput output_;
  TrainComparison comparison_;
};

constexpr const char* kHost = "host";

// What resident runs may take: the system needs some.
Bytes nine_tenths(Bytes size) { return Bytes{size.count() / 10 * 9}; }

BenchTraining::BenchTraining(const BenchTrainingFlags& flags, const std::string& bench)
    : flags_{flags},
      context_{flags.device.open()},
      is_host_{bench_machine(*context_.device, flags.memory).device == kHost},
      available_{context_.device->available_memory()},
      output_{bench, bench_machine(*context_.device, flags.memory), flags.json},
      comparison_{nine_tenths(available_), flags.settling()} {
  flags.memory.expect_far();
  if (flags.timelines.empty()) return;
  expect_writable_folder(flags.timelines);
  std::filesystem::create_directories(flags.timelines);
}

const TrainSubject& BenchTraining::subject(const NetAtBatch& at) {
  for (const auto& subject : comparison_.subjects()) {
    if (subject->name() == at.net && subject->batch() == at.batch) return *subject;
  }
  const WorkloadFlags workload = flags_.workload(at);
  return comparison_.add(std::make_unique<TrainSubject>(at.net, workload.network(),
                                                        *context_.backend, workload.step()));
}

NamedBudget BenchTraining::resolve(const std::string& budget, const TrainSubject& subject) const {
  return {.text = budget,
          .size = Budget::parse(budget).resolve(subject.workload().need(), available_)};
}

std::vector<NamedBudget> BenchTraining::resolve(const std::vector<std::string>& budgets,
                                                const TrainSubject& subject) const {
  std::vector<NamedBudget> resolved;
  resolved.reserve(budgets.size());
  for (const std::string& budget : budgets) resolved.push_back(resolve(budget, subject));
  return resolved;
}

TrainRoom BenchTraining::room() const {
  return {.near = available_,
          .ram = is_host_ ? available_ : um::available_memory(),
          .is_shared = is_host_};
}

void BenchTraining::run(nlohmann::json options) {
  const TrainBenchOptions measuring = flags_.measuring();
  expect_room(comparison_, room(), !measuring.space.far.file.empty());
  if (output_.is_for_people()) output_.print_heading();
  const PartialMeasurement measurement{[&](const std::stop_token& stop) {
    ProgressLine progress;
    TrainBench bench{context_, comparison_, measuring, stop};
    bench.run([&](const std::string& text) { progress.show(text); });
  }};
  report(std::move(options));
  measurement.expect_no_failure();
  expect_run_checks();
  measurement.expect_not_interrupted();
  expect_reached();
}

void BenchTraining::report(nlohmann::json options) {
  const std::vector<TrainRow> rows = comparison_.rows();
  if (output_.is_for_people()) print_training_rows(rows);
  output_.write(std::move(options), to_json(rows));
  if (!flags_.timelines.empty()) write_timelines(comparison_, flags_.timelines);
}

void BenchTraining::expect_run_checks() const {
  const std::vector<std::string> complaints =
      comparison_.complaints(flags_.must_have_same_losses(is_host_));
  if (complaints.empty()) return;
  std::string all;
  for (const std::string& each : complaints) all += (all.empty() ? "" : "; ") + each;
  throw um::Error{"these figures are not to be trusted: " + all};
}

void BenchTraining::expect_reached() const {
  const std::size_t reached = comparison_.rows().size();
  const std::size_t wanted = comparison_.planned_rows().size();
  if (reached == 0) {
    throw um::Error{"no run was reached in time; give more --seconds, or smaller batches"};
  }
  if (reached < wanted) {
    tell("note: only {} of {} rows reached in {:g} s; give more --seconds\n", reached, wanted,
         flags_.repeats.seconds);
  }
}

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
      ->check(whole_number(kBatchRange.least, kBatchRange.most))
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

struct PlannersFlags {
  BenchTrainingFlags flags{.budgets = {"60%", "40%", "25%"}};
  std::vector<std::string> planners{"all"};
};

std::vector<TrainStrategy> planners_of(const PlannersFlags& options) {
  std::vector<TrainStrategy> strategies;
  for (const Strategy& each : find_strategies(options.planners, true)) {
    strategies.push_back(
        planner_strategy(each.planner->name(), options.flags.memory.planned_mode()));
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
  options.flags.memory.memory = "managed";
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
