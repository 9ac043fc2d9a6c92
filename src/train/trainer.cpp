#include "src/train/trainer.h"

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <string_view>
#include <system_error>
#include <utility>

#include "prefetch/files/json.h"
#include "prefetch/files/machine.h"
#include "prefetch/files/plan_file.h"
#include "prefetch/planners/catalogue.h"
#include "src/data/open_dataset.h"
#include "src/plan/budget.h"
#include "src/plan/predicted_step.h"
#include "src/plan/sub_batch_choice.h"
#include "src/plan/sub_batch_plans.h"
#include "src/profile/measured_profile.h"
#include "src/step/batch_norm_values.h"
#include "src/train/checkpoint_key.h"

namespace spillway {

using um::Bytes;

namespace {

constexpr std::string_view kAutomatic = "auto";  // a budget that is left to us

// The model of a machine that its name names ("NVIDIA H200"), else of the one Spillway was built
// on.
prefetch::Machine closest_model(std::string device) {
  std::ranges::transform(device, device.begin(),
                         [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  for (const prefetch::Machine& machine : prefetch::built_in_machines()) {
    if (device.find(machine.name) != std::string::npos) return machine;
  }
  return prefetch::find_machine("host");
}

DatasetPair open_data(const TrainerOptions& options) {
  return open_dataset(options.data, {.image = options.network.input(),
                                     .classes = options.network.classes(),
                                     .batch = options.step.batch,
                                     .seed = options.training.seed,
                                     .labels = options.network.labels()});
}

TrainerOptions checked(TrainerOptions options) {
  expect_sub_batch(options.planning.sub_batch);
  if (const auto file = file_of_one_step(options.planning, options.step.batch)) {
    throw um::Error{"a " + std::string{*file} +
                    " file is about one step, but a batch in sub-batches runs several; leave the "
                    "file out, or turn sub-batches off"};
  }
  return options;
}

// With an end, and the learning rate's schedule for so long a training.
TrainOptions whole_training(TrainOptions options, const DatasetPair& data, std::size_t batch) {
  if (!options.steps && !options.epochs) options.epochs = 1;
  options.learning_rate =
      for_whole_training(options.learning_rate, last_step(options, data, batch));
  return options;
}

}  // namespace

std::optional<std::string_view> file_of_one_step(const PlanningOptions& planning,
                                                 std::size_t batch) {
  if (SubBatchChoice{planning.sub_batch}.leaves_whole(batch)) return std::nullopt;
  if (!planning.plan_file.empty()) return "plan";
  if (!planning.profile_file.empty()) return "profile";
  return std::nullopt;
}

Trainer::Trainer(ExecutionContext context, TrainerOptions options, TrainerEvents events,
                 std::stop_token stop)
    : Trainer{[&] { return std::move(context); }, std::move(options), std::move(events),
              std::move(stop)} {}

Trainer::Trainer(const std::function<ExecutionContext()>& open_context, TrainerOptions options,
                 TrainerEvents events, std::stop_token stop)
    : options_{checked(std::move(options))},
      events_{std::move(events)},
      stop_{std::move(stop)},
      request_{.memory = options_.memory.mode,
               .planner = &prefetch::find_planner(options_.planning.planner),
               .may_recompute = options_.planning.may_recompute},
      data_{open_data(options_)},
      context_{open_context()} {
  options_.training = whole_training(options_.training, data_, options_.step.batch);
  workload_.emplace(options_.network, *context_.backend, options_.step);
  whole_need_ = workload_->need();
  expect_going_on();
  const std::string& folder = options_.checkpoint.folder;
  std::error_code ignored;
  const bool is_there = !folder.empty() && std::filesystem::exists(folder, ignored);
  if (options_.checkpoint.resume || is_there) open_folder();
  cut_batch();
  expect_values_to_normalize(options_.network, options_.step.batch, workload_->sub_batches());
  make_plans_of_steps();
  expect_going_on();
  // A training that is refused leaves no folder behind.
  if (!folder_ && !folder.empty()) open_folder();
  session_.emplace(context_, *workload_, plans_, options_.memory.mode, options_.memory.space, stop_,
                   StopAfter::kStep);
  expect_going_on();
  start();
}

TrainingSummary Trainer::run() {
  SummaryOfSteps steps{options_.training.first_step};
  train(*session_, data_, options_.training,
        {.on_step =
             [&](auto step, auto epoch, const StepReport& report) {
               steps.add(step, report);
               if (events_.on_warning && !report.problem.empty())
                 events_.on_warning(report.problem);
               if (events_.on_step) events_.on_step(step, epoch, report);
             },
         .on_evaluation =
             [&](auto step, auto epoch, const Evaluation& evaluation) {
               steps.add(evaluation);
               if (events_.on_evaluation) events_.on_evaluation(step, epoch, evaluation);
             },
         .on_checkpoint = saving()},
        stop_);
  TrainingSummary summary = steps.summary();
  summary.predicted_step = predicted_step(*workload_, profiles_, plans_, options_.memory.mode);
  summary.budget = plans_.budget;
  summary.near_peak = session_->near_peak();
  summary.weights_sha256 = session_->state().sha256();
  return summary;
}

// First values, or those of the checkpoint.
void Trainer::start() {
  if (chosen_) {
    folder_->load(*chosen_, session_->state());
  } else {
    options_.training.first_step = 0;
    session_->state().initialise(options_.training.seed);
  }
  if (!folder_) return;
  const std::vector<RepeatedStep>& steps = workload_->training_steps();
  for (std::size_t i = 0; i < steps.size(); ++i) {
    folder_->set_plan(i, steps.size(), plans_.training[i], steps[i].step.graph);
  }
}

// Empty where nothing is to be saved.
std::function<void(std::uint64_t)> Trainer::saving() {
  if (!folder_) return {};
  return [this](std::uint64_t step) { save(step); };
}

void Trainer::save(std::uint64_t step) {
  const prefetch::SubBatches& batches = workload_->sub_batches();
  folder_->save(
      {.key = key_,
       .settings = {.learning_rate = options_.training.learning_rate,
                    .optimizer = options_.step.optimizer,
                    .threads = context_.threads,
                    .precision = context_.precision,
                    .deterministic = context_.deterministic,
                    .sub_batch = batches.steps > 1 ? std::optional{batches.size} : std::nullopt},
       .step = step},
      session_->state());
}

void Trainer::open_folder() {
  const CheckpointOptions& checkpoint = options_.checkpoint;
  if (checkpoint.resume) expect_checkpoint(checkpoint.folder);  // before the folder is made
  folder_.emplace(checkpoint.folder, checkpoint.keep);
  key_ = make_key(options_.network, {.name = options_.data, .sha256 = content_sha256(data_)},
                  options_.step.batch, options_.training.seed);
  if (checkpoint.resume) {
    choose_checkpoint();
  } else {
    folder_->expect_empty();  // another training may have been faster
  }
}

void Trainer::choose_checkpoint() {
  chosen_ = folder_->go_on(key_);
  const std::uint64_t done = chosen_->manifest.checkpoint.step;
  for (const std::string& problem : chosen_->passed_over) {
    if (!events_.on_warning) break;
    events_.on_warning(problem + "; going on from the checkpoint of step " + std::to_string(done));
  }
  options_.training.first_step = done;
  if (done < last_step(options_.training, data_, options_.step.batch)) return;
  throw NothingLeft{
      "nothing is left to train: the checkpoint in " + options_.checkpoint.folder + " is of step " +
          std::to_string(done) + "; give more --steps or --epochs to go on",
      done,
      weights_sha256(
          std::filesystem::path{options_.checkpoint.folder} / chosen_->manifest.tensors.name,
          workload_->training())};
}

// Page faults alone keep no budget where nothing evicts before the whole memory is full.
void Trainer::expect_budget_kept(std::span<const PlanOfFile> files) const {
  const bool by_faults = files.empty()
                             ? request_.planner->name() == "on-demand"
                             : std::ranges::any_of(files, [](const PlanOfFile& file) {
                                 return file.plan.residency == prefetch::Residency::kOnDemand;
                               });
  if (request_.memory != MemoryMode::kManaged || !by_faults || context_.device->evicts()) return;
  throw um::Error{"page faults alone keep no budget on " + context_.device->name() +
                  ": use another planner, explicit copies, or the host"};
}

void Trainer::cut_batch() {
  const SubBatchChoice choice{options_.planning.sub_batch};
  if (choice.is_off()) return;
  const prefetch::Machine model = closest_model(context_.device->name());
  SubBatchPlanner planner{{.network = options_.network,
                           .size_model = *context_.backend,
                           .machine = model,
                           .step = options_.step,
                           .budget = find_limit(nullptr),
                           .request = request_}};
  const prefetch::SubBatches batches = choice.resolve(options_.step.batch, planner);
  if (batches.steps == 1) return;
  workload_.emplace(options_.network, *context_.backend, options_.step, batches);
}

void Trainer::make_plans_of_steps() {
  std::vector<PlanOfFile> files = read_plans();
  expect_budget_kept(files);
  const Bytes limit = find_limit(files.empty() ? nullptr : &files.back().plan);
  expect_feasible(workload_->neediest_to_plan(), limit);
  profiles_ = find_profiles(limit);
  expect_going_on();
  if (!files.empty()) {
    plans_ = use_plans(std::move(files), *workload_, profiles_, limit, request_);
    return;
  }
  std::size_t tasks = 0;
  for (const RepeatedStep& part : workload_->training_steps()) {
    tasks += part.step.graph.tasks.size();
  }
  if (events_.on_planning) events_.on_planning(tasks);
  plans_ = make_plans(*workload_, profiles_, limit, request_);
}

// The plans to use instead of a planner's; none when there are none.
std::vector<PlanOfFile> Trainer::read_plans() const {
  const std::string& given = options_.planning.plan_file;
  const std::vector<RepeatedStep>& steps = workload_->training_steps();
  std::vector<PlanOfFile> files;
  if (given.empty() && !options_.checkpoint.resume) return files;
  for (std::size_t i = 0; i < steps.size(); ++i) {
    const std::string path = given.empty() ? folder_->plan_path(*chosen_, i) : given;
    files.push_back(
        {.plan = prefetch::read_plan(prefetch::JsonFile{path}, steps[i].step.graph), .name = path});
  }
  return files;
}

// The budget, or in resident mode, where none is given, what the run may at most turn out to need.
Bytes Trainer::find_limit(const prefetch::Plan* plan) const {
  const Bytes available = context_.device->available_memory();
  const bool is_given = options_.memory.budget != kAutomatic;
  if (request_.memory == MemoryMode::kResident && !is_given) return available;
  const Bytes limit = plan != nullptr && !is_given
                          ? workload_->run_budget(plan->budget)
                          : Budget::parse(options_.memory.budget)
                                .resolve(is_given ? whole_need_ : workload_->need(), available);
  if (limit > available) {
    throw um::Error{"a budget of " + um::to_string(limit) + " is more than the " +
                    um::to_string(available) + " of memory that are free; " +
                    (is_given
                         ? "give a smaller --budget (or MemoryOptions::budget)"
                         : "give a smaller --budget to spillway plan, and use the plan it makes")};
  }
  return limit;
}

std::vector<prefetch::Profile> Trainer::find_profiles(Bytes limit) {
  const std::string& given = options_.planning.profile_file;
  if (!given.empty()) return {profile_of_file(given, graph(), request_.memory)};
  return measure_profiles(context_,
                          {.workload = *workload_,
                           .limit = limit,
                           .mode = request_.memory,
                           .space = options_.memory.space},
                          stop_, [&](double fraction) {
                            if (events_.on_measuring) events_.on_measuring(fraction);
                          });
}

void Trainer::expect_going_on() const {
  if (stop_.stop_requested()) throw Interrupted{};
}

}  // namespace spillway
