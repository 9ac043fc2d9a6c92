#include "src/cli/training_setup.h"

#include <fmt/core.h>

#include <utility>

#include "prefetch/json.h"
#include "prefetch/plan_file.h"
#include "prefetch/profile_file.h"
#include "src/cli/progress_line.h"
#include "src/data/open_dataset.h"
#include "src/executor.h"
#include "src/measured_profile.h"

namespace spillway::cli {

using um::Bytes;

namespace {

TrainOptions whole_training(TrainOptions options, const DatasetPair& data) {
  options.learning_rate = for_whole_training(options.learning_rate, last_step(options, data));
  return options;
}

}  // namespace

TrainingSetup::TrainingSetup(const TrainingFlags& flags, const std::atomic<bool>& stop)
    : flags_{flags},
      stop_{stop},
      request_{flags.plan.request(flags.memory.mode())},
      network_{flags.workload.network()},
      data_{open_dataset(flags.data, {.image = network_.input(),
                                      .classes = network_.classes(),
                                      .batch = flags.workload.batch,
                                      .seed = flags.train.seed,
                                      .labels = network_.labels()})},
      training_{whole_training(flags.train, data_)},
      processor_{flags.processor.open()},
      workload_{network_, *processor_.backend, flags.workload.step()} {
  expect_going_on();
  if (flags.checkpoint.resume) open_folder();
  make_plan();
  expect_going_on();
  // A training that is refused leaves no folder behind.
  if (!flags.checkpoint.resume && !flags.checkpoint.folder.empty()) open_folder();
}

void TrainingSetup::open_folder() {
  folder_.emplace(flags_.checkpoint.folder);
  if (flags_.checkpoint.resume) {
    folder_->expect(checkpoint_key());
  } else {
    folder_->expect_empty();  // another training may have been faster
  }
}

// Page faults alone keep no budget where nothing evicts before the whole memory is full.
void TrainingSetup::expect_budget_kept() const {
  const bool by_faults =
      request_.memory == MemoryMode::kManaged && request_.planner->name() == "on-demand";
  if (!by_faults || processor_.device->evicts()) return;
  throw um::Error{"page faults alone keep no budget on " + processor_.device->name() +
                  ": use another --planner, --memory copy, or --device host"};
}

void TrainingSetup::make_plan() {
  expect_budget_kept();
  const std::string path = plan_path();
  std::optional<prefetch::Plan> plan;
  if (!path.empty()) plan = prefetch::read_plan(prefetch::JsonFile{path}, graph());
  const Bytes limit = find_limit(plan);
  expect_feasible(workload_.training_to_plan(), limit);
  profile_ = find_profile(limit);
  expect_going_on();
  if (plan) {
    plans_ = use_plan(*std::move(plan), path, workload_, profile_, limit, request_);
  } else {
    fmt::print(stderr, "planning {} tasks\n", graph().tasks.size());
    plans_ = make_plans(workload_, profile_, limit, request_);
  }
}

// The plan to use instead of a planner's; empty when there is none.
std::string TrainingSetup::plan_path() const {
  if (!flags_.plan_file.empty() || !flags_.checkpoint.resume) return flags_.plan_file;
  return folder_->plan_path();
}

// The budget, or in resident mode, where none is given, what the run may at most turn out to need.
Bytes TrainingSetup::find_limit(const std::optional<prefetch::Plan>& plan) const {
  const Bytes available = processor_.device->available_memory();
  const bool is_given = !flags_.plan.has_automatic_budget();
  if (request_.memory == MemoryMode::kResident && !is_given) return available;
  const Bytes limit = plan && !is_given
                          ? workload_.run_budget(plan->budget)
                          : Budget::parse(flags_.plan.budget).resolve(workload_.need(), available);
  if (limit > available) {
    throw um::Error{"a budget of " + um::to_string(limit) + " is more than the " +
                    um::to_string(available) + " of memory that are free; give a smaller --budget" +
                    (is_given ? "" : " to spillway plan")};
  }
  return limit;
}

prefetch::Profile TrainingSetup::find_profile(Bytes limit) {
  if (!flags_.profile_file.empty()) {
    return prefetch::read_profile(prefetch::JsonFile{flags_.profile_file}, graph());
  }
  ProgressLine progress;
  return measure_profile(
      processor_, workload_, limit, request_.memory, flags_.memory.space(), stop_,
      [&](double part) { progress.show(fmt::format("measuring tasks: {:.0f} %", 100 * part)); });
}

CheckpointKey TrainingSetup::checkpoint_key() const {
  return {.network = fmt::format("{} {}, {} classes", network_.name,
                                 nets::to_string(network_.input()), network_.classes()),
          .data = flags_.data,
          .batch = flags_.workload.batch,
          .seed = flags_.train.seed};
}

void TrainingSetup::expect_going_on() const {
  if (stop_) throw Interrupted{};
}

}  // namespace spillway::cli
