#include "src/cli/train_command.h"

#include <fmt/core.h>

#include <cstdint>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "nets/network.h"
#include "prefetch/chrome_trace.h"
#include "prefetch/json.h"
#include "prefetch/plan_file.h"
#include "prefetch/profile_file.h"
#include "prefetch/simulate.h"
#include "src/budget.h"
#include "src/checkpoint.h"
#include "src/cli/interrupt.h"
#include "src/cli/json_lines.h"
#include "src/cli/memory_options.h"
#include "src/cli/number_checks.h"
#include "src/cli/output_path.h"
#include "src/cli/plan_facts.h"
#include "src/cli/plan_options.h"
#include "src/cli/processor_options.h"
#include "src/cli/progress_line.h"
#include "src/cli/training_report.h"
#include "src/cli/workload_options.h"
#include "src/data/open_dataset.h"
#include "src/measured_profile.h"
#include "src/session.h"
#include "src/shortest_decimal.h"
#include "src/train.h"

namespace spillway::cli {
namespace {

using nlohmann::json;
using um::Bytes;

struct Options {
  WorkloadOptions workload;
  ProcessorOptions processor;
  MemoryOptions memory;
  PlanOptions plan;
  std::string data = "synthetic";
  std::string plan_file;
  std::string profile_file;
  std::string checkpoint_folder;
  bool resume = false;
  TrainOptions train;
  std::string trace;
  std::string json;
  bool has_budget = false;  // the user gave one
};

// One training, from what the user asked for to the last line of its report.
class Training {
 public:
  Training(const Options& options, const std::atomic<bool>& stop)
      : options_{options},
        stop_{stop},
        request_{options.plan.request(options.memory.mode())},
        budget_{Budget::parse(options.plan.budget)},
        network_{options.workload.network()},
        data_{open_dataset(options.data, {.image = network_.input(),
                                          .classes = network_.classes(),
                                         .batch = options.workload.batch,
                                          .seed = options.train.seed})},
        processor_{options.processor.open()},
        workload_{network_, *processor_.backend, options.workload.step()} {}

  void run() {
    prepare();
    if (!options_.checkpoint_folder.empty()) folder_.emplace(options_.checkpoint_folder);
    if (folder_ && !options_.resume) folder_->expect_empty();  // another training may be faster
    Session session{processor_, workload_, plans_, request_.memory, options_.memory.space(), stop_};
    describe(session);
    TrainOptions options = options_.train;
    start(session, options);
    TrainingReport report{options_.json, options.batch, plans_.budget};
    steps_done_ = options.first_step;
    train(session, data_, options,
          {.on_step =
               [&](auto step, auto epoch, const auto& as) {
                 steps_done_ = step;
                 report.step(step, epoch, as);
               },
           .on_evaluation = [&](auto step, auto epoch,
                                const auto& as) { report.evaluation(step, epoch, as); },
           .on_checkpoint = [&](auto step) { save(session, step); }});
    report.finish(summary(session, options), predicted_step());
    write_trace(session);
  }

 private:
  [[nodiscard]] const prefetch::TaskGraph& graph() const { return workload_.training().graph; }
  [[nodiscard]] bool plans_residency() const {
    return request_.memory == MemoryMode::kResident ||
           plans_.training.residency == prefetch::Residency::kPlanned;
  }

  // The plan to use instead of a planner's; empty when there is none.
  [[nodiscard]] std::string plan_path() const {
    if (!options_.plan_file.empty() || !options_.resume) return options_.plan_file;
    return folder_->plan_path();
  }

  // Profile, budget and plans.
  void prepare() {
    if (options_.resume) {
      folder_.emplace(options_.checkpoint_folder);
      folder_->expect(key());
    }
    const std::string path = plan_path();
    std::optional<prefetch::Plan> plan;
    if (!path.empty()) plan = prefetch::read_plan(prefetch::JsonFile{path}, graph());
    const Bytes limit = find_limit(plan);
    expect_feasible(workload_, limit);
    profile_ = find_profile(limit);
    if (plan) {
      plans_ = use_plan(*std::move(plan), path, workload_, profile_, limit, request_);
    } else {
      fmt::print(stderr, "planning {} tasks\n", graph().tasks.size());
      plans_ = make_plans(workload_, profile_, limit, request_);
    }
  }

  // The budget, or in resident mode what the run may at most turn out to need.
  [[nodiscard]] Bytes find_limit(const std::optional<prefetch::Plan>& plan) const {
    const Bytes available = processor_.device->available_memory();
    if (request_.memory == MemoryMode::kResident && !budget_.is_absolute()) return available;
    if (plan && !options_.has_budget) return workload_.run_budget(plan->budget);
    const Bytes budget = budget_.resolve(workload_.need(), available);
    if (budget > available) {
      throw um::Error{"a budget of " + um::to_string(budget) + " is more than the " +
                      um::to_string(available) + " of memory that are free"};
    }
    return budget;
  }

  [[nodiscard]] prefetch::Profile find_profile(Bytes limit) {
    if (!options_.profile_file.empty()) {
      return prefetch::read_profile(prefetch::JsonFile{options_.profile_file}, graph());
    }
    ProgressLine progress;
    return measure_profile(
        processor_, workload_, limit, options_.memory.space(), stop_,
        [&](double part) { progress.show(fmt::format("measuring tasks: {:.0f} %", 100 * part)); });
  }

  void describe(const Session& session) const {
    const PlanFacts facts = facts_of(plans_.training, graph());
    fmt::print(stderr, "{} ({} parameters) at batch {} on {}\n", network_.name,
               nets::count_parameters(network_), options_.workload.batch,
               processor_.backend->description());
    fmt::print(stderr, "{}; budget {} (smallest feasible {}, all near {})\n",
               session.memory_description(), um::to_string(plans_.budget),
               um::to_string(workload_.need().smallest), um::to_string(workload_.need().resident));
    std::string algorithms;
    for (const auto& [name, count] : facts.algorithms) {
      algorithms += fmt::format("{}{} {}", algorithms.empty() ? "" : ", ", count, name);
    }
    fmt::print(stderr,
               "plan of {}: {} out and {} in a step, {} tasks run again; convolutions: {}\n",
               plans_.training.planner, um::to_string(facts.offloaded),
               um::to_string(facts.prefetched), facts.recomputed_tasks, algorithms);
  }

  [[nodiscard]] CheckpointKey key() const {
    return {.network = fmt::format("{} {}, {} classes", network_.name,
                                   nets::to_string(network_.input()), network_.classes()),
            .data = options_.data,
            .batch = options_.workload.batch,
            .seed = options_.train.seed};
  }

  // First values, or those of the checkpoint.
  void start(Session& session, TrainOptions& options) const {
    if (options_.resume) {
      options.first_step = folder_->load(key(), session.state());
      fmt::print(stderr, "going on after step {}\n", options.first_step);
    } else {
      session.state().initialise(options.seed);
    }
    if (folder_) folder_->save_plan(plans_.training, graph());
  }

  void save(Session& session, std::uint64_t step) const {
    if (!folder_) return;
    folder_->save({.key = key(),
                   .settings = {.learning_rate = options_.train.learning_rate,
                                .momentum = options_.workload.momentum,
                                .weight_decay = options_.workload.weight_decay,
                                .threads = processor_.threads},
                   .step = step},
                  session.state());
  }

  // A plan says how long its step should take; page faults alone are not simulated.
  [[nodiscard]] std::optional<um::Nanoseconds> predicted_step() const {
    if (!plans_residency()) return std::nullopt;
    if (request_.memory == MemoryMode::kResident) {
      return prefetch::compute_time(profile_, plans_.training.runs);
    }
    return prefetch::simulate(plans_.training, profile_).makespan();
  }

  [[nodiscard]] json summary(Session& session, const TrainOptions& options) const {
    const PlanFacts facts = facts_of(plans_.training, graph());
    return {{"network", network_.name},
            {"parameters", nets::count_parameters(network_)},
            {"batch", options.batch},
            {"image", nets::to_string(network_.input())},
            {"classes", network_.classes()},
            {"data", data_.train->name()},
            {"seed", options.seed},
            {"learning_rate", shortest_decimal(options.learning_rate)},
            {"device", processor_.device->name()},
            {"backend", processor_.backend->description()},
            {"memory", to_string(request_.memory)},
            {"memory_description", session.memory_description()},
            {"far", options_.memory.far},
            {"planner", plans_.training.planner},
            {"algorithms", facts.algorithms},
            {"recomputed_tasks", facts.recomputed_tasks},
            {"planned_offload_bytes", facts.offloaded.count()},
            {"planned_prefetch_bytes", facts.prefetched.count()},
            {"profile", profile_.source},
            {"budget_bytes", plans_.budget.count()},
            {"min_budget_bytes", workload_.need().smallest.count()},
            {"resident_bytes", workload_.need().resident.count()},
            {"near_peak_bytes", session.near_peak().count()},
            {"page_bytes", workload_.page().count()},
            {"steps", steps_done_},
            {"weights_sha256", session.state().sha256()}};
  }

  void write_trace(const Session& session) const {
    if (options_.trace.empty()) return;
    std::vector<prefetch::NamedTimeline> timelines;
    if (request_.memory != MemoryMode::kResident && plans_residency()) {
      timelines.push_back({"predicted", prefetch::simulate(plans_.training, profile_)});
    }
    timelines.push_back({"measured, last step", session.timeline()});
    prefetch::write_json(prefetch::to_chrome_trace(graph(), plans_.training, timelines),
                         options_.trace);
  }

  const Options& options_;
  const std::atomic<bool>& stop_;
  PlanRequest request_;
  Budget budget_;
  nets::Network network_;
  DatasetPair data_;
  Processor processor_;
  Workload workload_;
  std::optional<CheckpointFolder> folder_;
  prefetch::Profile profile_;
  Plans plans_;
  std::uint64_t steps_done_ = 0;
};

// A training that goes on keeps its settings, but for those that the user gives anew.
void restore_settings(Options& options, const CLI::App& command) {
  if (options.checkpoint_folder.empty()) {
    throw um::Error{"--resume needs --checkpoint DIR, the folder to go on from"};
  }
  const KeptSettings kept = read_settings(options.checkpoint_folder);
  const auto is_given = [&](const char* flag) { return command.count(flag) > 0; };
  if (!is_given("--lr")) options.train.learning_rate = kept.learning_rate;
  if (!is_given("--momentum")) options.workload.momentum = kept.momentum;
  if (!is_given("--weight-decay")) options.workload.weight_decay = kept.weight_decay;
  if (!is_given("--threads")) options.processor.threads = static_cast<int>(kept.threads);
}

void train(Options& options) {
  if (!options.train.steps && !options.train.epochs) options.train.epochs = 1;
  options.train.batch = options.workload.batch;
  expect_writable(options.json);
  expect_writable(options.trace);
  options.memory.expect_far();
  if (!options.resume && !options.checkpoint_folder.empty()) {
    expect_no_checkpoint(options.checkpoint_folder);
    expect_writable_folder(options.checkpoint_folder);
  }
  const Interrupt interrupt;
  Training{options, interrupt.requested()}.run();
}

void add_training_flags(CLI::App& command, Options& options) {
  constexpr const char* kTraining = "Training";
  command
      .add_option("--data", options.data,
                  "synthetic (drawn figures), idx:DIR (MNIST files) or cifar10:DIR (binary "
                  "version); images are resized to the network's")
      ->capture_default_str()
      ->group(kTraining);
  command.add_option("--steps", options.train.steps, "Stop after so many steps")
      ->check(check_whole_number)
      ->group(kTraining);
  command
      .add_option("--epochs", options.train.epochs,
                  "Stop after so many passes over the data (default: 1, unless --steps is given)")
      ->check(check_whole_number)
      ->group(kTraining);
  command.add_option("--lr", options.train.learning_rate, "Learning rate")
      ->check(check_amount)
      ->capture_default_str()
      ->group(kTraining);
  command.add_option("--seed", options.train.seed, "Of weights, data order and dropout")
      ->check(check_whole_number)
      ->capture_default_str()
      ->group(kTraining);
  command
      .add_option("--checkpoint", options.checkpoint_folder,
                  "Save the training in this folder at the end of each epoch")
      ->group(kTraining);
  command
      .add_option("--checkpoint-every", options.train.checkpoint_every,
                  "Save every so many steps instead")
      ->check(check_whole_number)
      ->group(kTraining);
  command
      .add_flag("--resume", options.resume,
                "Go on from the checkpoint, with its plan unless --plan names another")
      ->group(kTraining);
}

}  // namespace

void add_train_command(CLI::App& app) {
  CLI::App* const command = app.add_subcommand("train", "Train a network within a memory budget");
  const auto options = std::make_shared<Options>();  // shared: the callback keeps it
  options->workload.add_to(*command);
  add_training_flags(*command, *options);
  options->processor.add_to(*command);
  options->memory.add_mode_to(*command);
  options->memory.add_space_to(*command);
  options->plan.add_to(*command);
  command->add_option("--plan", options->plan_file, "Use this plan, made by spillway plan --out")
      ->group("Planning");
  command
      ->add_option("--profile", options->profile_file,
                   "Use these times, made by spillway profile, instead of measuring first")
      ->group("Planning");
  command
      ->add_option("--trace", options->trace,
                   "Write the last step here as a Chrome trace, predicted and measured (opens in "
                   "Perfetto)")
      ->group("Output");
  command
      ->add_option("--json", options->json,
                   "Write one JSON object a step here, and a summary; - for standard output")
      ->group("Output");
  command->footer(
      "Example: spillway train --net resnet50 --batch 32 --steps 20 --budget 40% --json -");
  command->callback([options, command] {
    options->has_budget = command->count("--budget") > 0;
    if (options->resume) restore_settings(*options, *command);
    train(*options);
  });
}

}  // namespace spillway::cli
