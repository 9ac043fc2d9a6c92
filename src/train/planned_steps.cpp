#include "src/train/planned_steps.h"

#include <algorithm>
#include <cstddef>
#include <exception>
#include <iterator>
#include <string_view>
#include <utility>

#include "prefetch/files/json.h"
#include "prefetch/files/plan_file.h"
#include "prefetch/planners/catalogue.h"
#include "src/plan/bucket_choice.h"
#include "src/plan/budget.h"
#include "src/plan/file_plans.h"
#include "src/plan/memory_choice.h"
#include "src/plan/micro_batch_choice.h"
#include "src/plan/plan_question.h"
#include "src/plan/predicted_step.h"
#include "src/ranks/collectives.h"
#include "src/run/executor.h"
#include "src/run/step_space.h"
#include "src/train/data_parallel/rank_plans.h"
#include "src/train/data_parallel/rank_step.h"

namespace spillway {
namespace {

using um::Bytes;

constexpr std::string_view kAutomatic = "auto";  // a budget that is left to us

PlanRequest request_of(const TrainerOptions& options, const um::Device& device) {
  return {.memory = memory_mode(options.memory.mode, device, options.memory.space.far),
          .planner = &prefetch::find_planner(options.planning.planner),
          .may_recompute = options.planning.may_recompute,
          .state = options.planning.state,
          .update = options.planning.update};
}

// Returns the plan of a file on all ranks. Throws um::Error on all of them if one cannot use it.
FilePlan read_for_all(const StateChoice& choice, const PlanRequest& request,
                      const std::string& path, Communicator& communicator) {
  const auto programs =
      all_gather_values(communicator, fingerprint(choice.near().training().graph));
  if (std::ranges::count(programs, programs.front()) < std::ssize(programs)) {
    throw um::Error{
        "a plan in a file is of one rank's program, and those of these ranks differ; leave out "
        "--plan, or --zero, or give as --micro-batches the number of ranks times a power of two"};
  }
  FilePlan read;
  std::exception_ptr failure;
  try {
    read = read_file_plan(choice, request, path);
  } catch (const um::Error&) {
    failure = std::current_exception();
  }
  throw_on_all(communicator, failure);
  return read;
}

}  // namespace

PlannedSteps::PlannedSteps(const TrainerOptions& options, ExecutionContext& context,
                           TrainerEvents events, std::stop_token stop)
    : options_{options},
      context_{context},
      events_{std::move(events)},
      stop_{std::move(stop)},
      request_{request_of(options, *context.device)},
      space_{options.memory.space},
      buckets_{options.ranks.buckets},
      times_{options.planning.times,
             context,
             options.network.name + " at batch " + std::to_string(options.step.batch),
             options.ranks.communicator.get().ranks_on_node(),
             {.on_measuring = events_.on_measuring, .on_warning = events_.on_warning},
             stop_} {
  if (options.only_evaluates) {
    near_ = Workload::of_evaluation(options.network, *context.backend,
                                    {.batch = options.step.batch,
                                     .has_byte_images = options.step.has_byte_images,
                                     .gives_logits = options.step.gives_logits});
    choose_state();
  } else {
    build(options.step, first_cut());
  }
  refer_to_need();
}

// Returns this rank's micro-batches. A process alone gets the whole batch, as budgets are relative
// to that.
MicroBatches PlannedSteps::first_cut() const {
  const std::size_t batch = options_.step.batch;
  const Communicator& communicator = options_.ranks.communicator;
  if (communicator.size() == 1) return all_of(batch, prefetch::cut(batch, batch));
  return part_of_rank(all_of(batch, options_.planning.micro_batches.resolve_for_ranks(batch)),
                      communicator.rank(), communicator.size());
}

void PlannedSteps::build(const StepOptions& step, const MicroBatches& batches) {
  choice_.reset();
  near_ = std::make_unique<const Workload>(
      options_.network, *context_.backend, step, batches, options_.ranks.features(),
      [batches, &ranks = options_.ranks](const Step& training) {
        return RankStep::near_memory(batches, ranks, training);
      });
  choose_state();
}

// What state may be chosen from.
PlanRequest PlannedSteps::state_request() const {
  PlanRequest request = request_;
  if (options_.ranks.communicator.get().size() == 1) return request;
  if (request.update == UpdateRule::kAuto) request.update = UpdateRule::kNear;
  return request;
}

void PlannedSteps::choose_state() {
  choice_.emplace(*near_, *context_.backend, state_request());
  workload_ = &*near_;
}

void PlannedSteps::cut_batch() {
  if (options_.ranks.communicator.get().size() > 1) return;
  const auto search = [&] {
    const prefetch::Machine model = modelled_machine(*context_.device, events_.on_warning);
    return MicroBatchSearch{{.network = options_.network,
                             .size_model = *context_.backend,
                             .machine = model,
                             .step = options_.step,
                             .budget = find_limit(nullptr),
                             .request = request_}}
        .choose();
  };
  const prefetch::BatchCut batches =
      options_.planning.micro_batches.resolve(options_.step.batch, search);
  if (batches.count == 1) return;
  build(options_.step, all_of(options_.step.batch, batches));
  refer_to_need();
}

// Budgets of a process alone are relative to the whole batch.
bool PlannedSteps::is_reference() const {
  return near_->micro_batches().count() == 1 || options_.ranks.communicator.get().size() > 1;
}

// The smallest budget is that of the batch as it is cut, unless that followed from the budget.
void PlannedSteps::refer_to_need() {
  if (is_reference()) {
    whole_need_ = choice_->need();
  } else if (!options_.planning.micro_batches.is_automatic) {
    whole_need_.smallest = choice_->need().smallest;
  }
}

// Files that were made without a look at the data are of images that are floats, and so are the
// plans of a training that began with such a file.
void PlannedSteps::take_floats_for(const std::string& plan, const KeptPlans& kept) {
  if (!options_.step.has_byte_images) return;
  const std::string& times = options_.planning.times.file;
  const bool is_of_floats =
      (!plan.empty() && !is_file_of(*choice_, plan)) ||
      (!times.empty() && !is_made_for(profiled_step(), prefetch::JsonFile{times}.root()));
  Communicator& communicator = options_.ranks.communicator;  // all ranks take the same images
  if (any_rank(communicator, is_of_floats)) return build_with(false);
  const auto are_of_others = [&] { return any_rank(communicator, !kept.are_of(*choice_)); };
  if (!kept.are_there() || !are_of_others()) return;
  build_with(false);
  if (are_of_others()) build_with(true);
}

void PlannedSteps::build_with(bool has_byte_images) {
  StepOptions step = options_.step;
  step.has_byte_images = has_byte_images;
  build(step, MicroBatches{near_->micro_batches()});
  refer_to_need();
}

void PlannedSteps::plan(const std::string& path, const KeptPlans& kept) {
  take_floats_for(path, kept);
  std::optional<PlanOfFile> file;
  if (!path.empty()) {
    FilePlan read = read_for_all(*choice_, request_, path, options_.ranks.communicator);
    workload_ = read.workload;
    file = std::move(read.plan);
  }
  const bool pages_on_demand = file ? file->plan.residency == prefetch::Residency::kOnDemand
                                    : request_.planner->name() == "on-demand";
  expect_budget_kept(request_.memory, pages_on_demand, *context_.device);
  const Bytes limit = file ? find_limit(&file->plan) : limit_of(kept);
  if (file) {
    expect_feasible(workload_->training_to_plan(), limit);
  } else {
    workload_ = &choice_->within(limit);
    expect_feasible(*workload_, limit, request_);
  }
  plan_within(limit, file, kept);
  if (!may_spill()) return;
  const Bytes far = far_memory(layouts_of(*workload_, plans_), request_.memory, workload_->page());
  if (far == Bytes{} || plans_.budget + far <= available_memory()) return;
  // The file of unified memory has room for all of it.
  const bool is_managed = request_.memory == MemoryMode::kManaged;
  space_.far.file = options_.memory.find_far_folder(is_managed ? workload_->need().resident : far);
  if (!file) workload_ = &choice_->within(limit);
  plan_within(limit, file, kept);
}

// Whether far memory may move to a file. Several ranks would have to agree on it.
bool PlannedSteps::may_spill() const {
  return options_.memory.find_far_folder && space_.far.file.empty() &&
         request_.memory != MemoryMode::kResident &&
         options_.ranks.communicator.get().size() == 1 && context_.device->memory_facts().is_host;
}

void PlannedSteps::plan_within(Bytes limit, const std::optional<PlanOfFile>& file,
                               const KeptPlans& kept) {
  std::optional<prefetch::Profile> found = find_profile(limit);
  if (any_rank(options_.ranks.communicator, stop_.stop_requested())) throw Interrupted{};
  um::expects(found.has_value(), "measurements end early only where a stop is requested");
  profile_ = *std::move(found);
  const auto interconnect =
      broadcast_profile(options_.ranks, context_, limit, workload_->training(), profile_);
  const bool may_choose = options_.ranks.chooses_buckets && !file;
  if (interconnect && may_choose) choose_buckets(*interconnect, limit);
  if (file) {
    plans_ = answer({.steps = *workload_,
                     .profile = profile_,
                     .budget = limit,
                     .request = request_,
                     .file = file})
                 .plans;
    return;
  }
  const KeptPlans::Difference difference = kept.difference(settings(), limit);
  if (difference.text.empty() && use_kept(kept, limit)) return;
  plan_anew(limit, kept, difference);
  if (options_.memory.budget == kAutomatic && context_.device->memory_facts().is_host) {
    take_what_is_used(plans_, *workload_, request_.memory);
  }
}

// Returns the checkpoint's budget where the same is asked for and can be kept here; otherwise what
// is asked for. The budget of a batch that is cut differs with the number of ranks.
Bytes PlannedSteps::limit_of(const KeptPlans& kept) const {
  const bool is_alone = options_.ranks.communicator.get().size() == 1;
  if (request_.memory != MemoryMode::kResident && is_alone && kept.are_there() &&
      (near_->micro_batches().count() == 1 || kept.are_of(*choice_))) {
    const std::optional<Bytes> same = kept.budget(options_.memory.budget, *choice_);
    // Another plan may need more of the automatic budget than the kept one uses.
    const bool may_need_more = same && options_.memory.budget == kAutomatic &&
                               !kept.difference(settings(), *same).text.empty();
    if (same && !may_need_more && *same >= choice_->need().smallest &&
        *same <= available_memory()) {
      return *same;
    }
  }
  return find_limit(nullptr);
}

// Returns the settings that a checkpoint keeps.
KeptSettings PlannedSteps::settings() const {
  KeptSettings settings = kept_settings(options_, context_, near_->micro_batches());
  settings.planning->mode = to_string(request_.memory);
  return settings;
}

// The checkpoint's plans, where they are of one of the steps that may run.
bool PlannedSteps::use_kept(const KeptPlans& kept, Bytes limit) {
  if (use_kept(kept, *workload_, limit)) return true;
  // Nothing else has room, and the updates of this one are not timed as tasks.
  if (workload_ == choice_->far_updates()) return false;
  const bool may_be_far = request_.state != StateRule::kNear &&
                          request_.memory != MemoryMode::kResident &&
                          request_.update != UpdateRule::kFar;
  if (!may_be_far) return false;
  // Another rank's state may be near, so that all of them ask.
  if (use_kept(kept, choice_->far(), limit)) return true;
  const Workload* const far_updates = choice_->far_updates();
  return request_.update != UpdateRule::kNear && far_updates != nullptr &&
         use_kept(kept, *far_updates, limit);
}

// The same where they are of `steps`. All ranks call it with the same ones.
bool PlannedSteps::use_kept(const KeptPlans& kept, const Workload& steps, Bytes limit) {
  if (!kept.are_there()) return false;
  prefetch::Profile profile = profile_for(steps, *workload_, profile_);
  auto plans = kept.use(steps, profile, limit, request_);
  if (!plans) return false;
  workload_ = &steps;
  profile_ = std::move(profile);
  plans_ = *std::move(plans);
  return true;
}

void PlannedSteps::plan_anew(Bytes limit, const KeptPlans& kept,
                             const KeptPlans::Difference& difference) {
  if (events_.on_planning) events_.on_planning(workload_->training().graph.tasks.size());
  const Workload& measured = *workload_;
  PlanAnswer best = answer({.steps = measured,
                            .choice = &*choice_,
                            .profile = kept.favour(measured, profile_),
                            .budget = limit,
                            .request = request_});
  workload_ = best.workload;
  profile_ = profile_for(*workload_, measured, std::move(profile_));  // not the favoured one
  plans_ = std::move(best.plans);
  if (!kept.are_there() || !events_.on_warning) return;
  events_.on_warning(kept.departure(difference, *workload_, plans_.training));
}

// Of the measured steps; those that run are made anew where other buckets are faster.
void PlannedSteps::choose_buckets(const prefetch::Interconnect& interconnect, Bytes limit) {
  ChosenBuckets chosen = choose_rank_buckets(
      options_.ranks, *near_,
      {.workload = *workload_, .profile = profile_, .interconnect = interconnect},
      *context_.backend, limit, state_request());
  if (chosen.near == nullptr) return;
  buckets_ = chosen.rule;
  profile_ = std::move(chosen.profile);
  choice_.reset();
  near_ = std::move(chosen.near);
  choose_state();
  workload_ = &choice_->within(limit);
  profile_ = profile_of(*workload_,
                        {.workload = *near_, .profile = profile_, .interconnect = interconnect});
}

// What a budget is relative to: of a plan that is given, the need of its steps.
prefetch::NearNeed PlannedSteps::need_for(const prefetch::Plan* plan) const {
  const bool is_given = options_.memory.budget != kAutomatic;
  if (is_given && !(plan != nullptr && is_reference())) return whole_need_;
  // Which side updates is decided under a budget: it is relative to the same as then.
  return workload_ == choice_->far_updates() ? choice_->need() : workload_->need();
}

// Near memory that this process may use: ranks of one machine share its RAM, and have a GPU each.
Bytes PlannedSteps::available_memory() const {
  const Bytes all = context_.device->available_memory();
  if (options_.ranks.device_communicator) return all;
  return Bytes{all.count() / options_.ranks.communicator.get().ranks_on_node()};
}

// The budget, or in resident mode, where none is given, what the run may at most turn out to need.
Bytes PlannedSteps::find_limit(const prefetch::Plan* plan) const {
  const Bytes available = available_memory();
  const bool is_given = options_.memory.budget != kAutomatic;
  if (request_.memory == MemoryMode::kResident && !is_given) return available;
  const Bytes limit =
      plan != nullptr && !is_given
          ? workload_->run_budget(plan->budget)
          : Budget::parse(options_.memory.budget).resolve(need_for(plan), available);
  if (limit > available) {
    throw um::Error{"a budget of " + um::to_string(limit) + " is more than the " +
                    um::to_string(available) + " of memory that are free; " +
                    (is_given
                         ? "give a smaller --budget"
                         : "give a smaller --budget to spillway plan, and use the plan it makes")};
  }
  return limit;
}

// Returns the step that a profile in a file is of: one micro-batch, trained by one process.
prefetch::TaskGraph PlannedSteps::profiled_step() const {
  StepOptions step = options_.step;
  step.batch = near_->micro_batches().size;
  step.has_byte_images = load_of(near_->training()).has_bytes;
  return make_training_step(options_.network, *context_.backend, step).graph;
}

// Returns nothing when this rank is to stop: others may be in the middle of it.
std::optional<prefetch::Profile> PlannedSteps::find_profile(Bytes limit) {
  // Several ranks need times of tasks to know what exchanges cost.
  const bool is_needed = options_.ranks.communicator.get().size() > 1;
  const bool may_update_far = choice_->may_update_far() || workload_ == choice_->far_updates();
  try {
    return times_.find(
        {.workload = *workload_,
         .limit = limit,
         .mode = request_.memory,
         .space = space_,
         .with_link = request_.memory != MemoryMode::kResident,
         .with_far_updates = may_update_far},
        [this] { return profiled_step(); }, is_needed);
  } catch (const Interrupted&) {
    return std::nullopt;
  }
}

}  // namespace spillway
