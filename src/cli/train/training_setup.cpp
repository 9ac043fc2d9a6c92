#include "src/cli/train/training_setup.h"

#include <fmt/core.h>

#include <algorithm>
#include <cctype>
#include <span>
#include <utility>

#include "nets/text/network_text.h"
#include "prefetch/files/json.h"
#include "prefetch/files/machine.h"
#include "prefetch/files/plan_file.h"
#include "prefetch/files/profile_file.h"
#include "src/cli/terminal/progress_line.h"
#include "src/data/open_dataset.h"
#include "src/execute/executor.h"
#include "src/files/sha256.h"
#include "src/plan/predicted_step.h"
#include "src/plan/sub_batch_plans.h"
#include "src/profile/measured_profile.h"

namespace spillway::cli {

using um::Bytes;

namespace {

TrainOptions whole_training(TrainOptions options, const DatasetPair& data) {
  options.learning_rate = for_whole_training(options.learning_rate, last_step(options, data));
  return options;
}

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
      context_{flags.context.open()},
      workload_{std::in_place, network_, *context_.backend, flags.workload.step()},
      whole_need_{workload_->need()} {
  expect_going_on();
  if (flags.checkpoint.resume) open_folder();
  cut_batch();
  make_plans_of_steps();
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
void TrainingSetup::expect_budget_kept(std::span<const PlanOfFile> files) const {
  const bool by_faults = files.empty()
                             ? request_.planner->name() == "on-demand"
                             : std::ranges::any_of(files, [](const PlanOfFile& file) {
                                 return file.plan.residency == prefetch::Residency::kOnDemand;
                               });
  if (request_.memory != MemoryMode::kManaged || !by_faults || context_.device->evicts()) return;
  throw um::Error{"page faults alone keep no budget on " + context_.device->name() +
                  ": use another planner, --memory copy, or --device host"};
}

void TrainingSetup::cut_batch() {
  if (flags_.sub_batch.is_off()) return;
  const prefetch::Machine model = closest_model(context_.device->name());
  SubBatchPlanner planner{{.network = network_,
                           .size_model = *context_.backend,
                           .machine = model,
                           .step = flags_.workload.step(),
                           .budget = find_limit(nullptr),
                           .request = request_}};
  const prefetch::SubBatches batches = flags_.sub_batch.resolve(flags_.workload.batch, planner);
  if (batches.steps == 1) return;
  workload_.emplace(network_, *context_.backend, flags_.workload.step(), batches);
}

void TrainingSetup::make_plans_of_steps() {
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
  fmt::print(stderr, "planning {} tasks\n", tasks);
  plans_ = make_plans(*workload_, profiles_, limit, request_);
}

// The plans to use instead of a planner's; none when there are none.
std::vector<PlanOfFile> TrainingSetup::read_plans() const {
  const std::vector<RepeatedStep>& steps = workload_->training_steps();
  std::vector<PlanOfFile> files;
  if (flags_.plan_file.empty() && !flags_.checkpoint.resume) return files;
  for (std::size_t i = 0; i < steps.size(); ++i) {
    const std::string path =
        flags_.plan_file.empty() ? folder_->plan_path(i, steps.size()) : flags_.plan_file;
    files.push_back(
        {.plan = prefetch::read_plan(prefetch::JsonFile{path}, steps[i].step.graph), .name = path});
  }
  return files;
}

// The budget, or in resident mode, where none is given, what the run may at most turn out to need.
Bytes TrainingSetup::find_limit(const prefetch::Plan* plan) const {
  const Bytes available = context_.device->available_memory();
  const bool is_given = !flags_.plan.has_automatic_budget();
  if (request_.memory == MemoryMode::kResident && !is_given) return available;
  const Bytes limit = plan != nullptr && !is_given
                          ? workload_->run_budget(plan->budget)
                          : Budget::parse(flags_.plan.budget)
                                .resolve(is_given ? whole_need_ : workload_->need(), available);
  if (limit > available) {
    throw um::Error{"a budget of " + um::to_string(limit) + " is more than the " +
                    um::to_string(available) + " of memory that are free; give a smaller --budget" +
                    (is_given ? "" : " to spillway plan")};
  }
  return limit;
}

std::vector<prefetch::Profile> TrainingSetup::find_profiles(Bytes limit) {
  if (!flags_.profile_file.empty()) {
    return {prefetch::read_profile(prefetch::JsonFile{flags_.profile_file}, graph())};
  }
  ProgressLine progress;
  return measure_profiles(context_,
                          {.workload = *workload_,
                           .limit = limit,
                           .mode = request_.memory,
                           .space = flags_.memory.space()},
                          stop_, [&](double part) {
                            progress.show(fmt::format("measuring tasks: {:.0f} %", 100 * part));
                          });
}

um::Nanoseconds TrainingSetup::predicted_step() const {
  return spillway::predicted_step(*workload_, profiles_, plans_, request_.memory);
}

CheckpointKey TrainingSetup::checkpoint_key() const {
  Sha256 layers;
  const std::string text = nets::layers_text(network_);
  layers.update(std::as_bytes(std::span{text}));
  return {.network = fmt::format("{} {}, {} classes", network_.name,
                                 nets::to_string(network_.input()), network_.classes()),
          .layers = layers.hex(),
          .data = flags_.data,
          .batch = flags_.workload.batch,
          .seed = flags_.train.seed};
}

void TrainingSetup::expect_going_on() const {
  if (stop_) throw Interrupted{};
}

}  // namespace spillway::cli
