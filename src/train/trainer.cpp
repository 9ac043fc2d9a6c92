#include "src/train/trainer.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <span>
#include <system_error>
#include <utility>

#include "src/io/data/batch_loader.h"
#include "src/io/file_digest.h"
#include "src/plan/predicted_step.h"
#include "src/plan/sub_batch_plans.h"
#include "src/step/sub_step.h"
#include "src/train/parts/rank_messages.h"
#include "src/train/parts/rank_training.h"
#include "src/train/state.h"
#include "um/machine/available_memory.h"

namespace spillway {

Trainer::Trainer(ExecutionContext context, TrainerOptions options, TrainerEvents events,
                 std::stop_token stop)
    : Trainer{[&] { return std::move(context); }, std::move(options), std::move(events),
              std::move(stop)} {}

Trainer::Trainer(const std::function<ExecutionContext()>& open_context, TrainerOptions options,
                 TrainerEvents events, std::stop_token stop)
    : options_{checked_options(std::move(options))},
      events_{std::move(events)},
      users_stop_{std::move(stop), [own = own_stop_]() mutable { own.request_stop(); }},
      data_{open_data(options_, events_, stop_)},
      context_{open_context()} {
  options_.training = whole_training(options_.training, data_, options_.step.batch);
  options_.training.first_step = 0;
  const std::vector<NamedText> own = training_agreement(options_, context_);
  options_.ranks.agreement.insert(options_.ranks.agreement.end(), own.begin(), own.end());
  expect_ranks_agree(options_.ranks, options_.network, data_, context_);
  if (options_.ranks.join_devices) {
    near_ranks_ = options_.ranks.join_devices(context_);
    options_.ranks.near_communicator = near_ranks_.get();
  }
  options_.step.has_byte_images =
      can_load_bytes(*data_.train, options_.training.mixing) && data_.test->as_bytes() != nullptr;
  expect_evaluation(options_, data_);
  TrainerEvents while_planning = events_;
  while_planning.on_warning = [this](const std::string& sentence) { warn(sentence); };
  steps_.emplace(options_, context_, std::move(while_planning), stop_);
  static_cast<void>(zeroed_norms(options_));  // throws now rather than after measuring
  expect_going_on();
  if (!options_.initial.weights.empty()) {
    weights_.emplace(options_.initial.weights,
                     NamedNetwork{.name = options_.network.name,
                                  .arrays = weight_tensors(workload().training())},
                     options_.initial.has_new_head);
  }
  expect_same_start();
  const std::string& folder = options_.checkpoint.folder;
  std::error_code ignored;
  const bool is_there = !folder.empty() && std::filesystem::exists(folder, ignored);
  on_folder([&] {
    const bool is_in_the_way = is_there && !options_.checkpoint.only_looks;
    if (options_.checkpoint.resume || is_in_the_way) open_folder();
  });
  steps_->cut_batch();
  expect_values_to_normalize(options_.network, options_.step.batch, workload().sub_batches());
  steps_->plan(plan_files(), kept_plans());
  expect_going_on();
  // A training that is refused leaves no folder behind.
  on_folder([&] {
    if (!folder_ && !folder.empty() && !options_.checkpoint.only_looks) open_folder();
  });
  warn_of_schedule();
  ram_before_ = um::resident_memory();
  session_.emplace(context_, workload(), plans(), memory(), steps_->space(), stop_,
                   StopAfter::kStep, options_.ranks);
  divide_state();
  expect_going_on();
  start();
}

TrainingSummary Trainer::run() {
  is_running_ = true;
  SummaryOfSteps steps{options_.training.first_step};
  train_all({.on_step =
                 [&](auto step, auto epoch, const StepReport& report) {
                   steps.add(step, report);
                   if (report.is_last_wanted) stop_of_ranks_.request_stop();
                   if (report.has_rank_warnings) tell_of_ranks();
                   report_broken_files();
                   if (!report.problem.empty()) warn(report.problem);
                   session_->announce_warnings(warnings_.are_there());
                   if (events_.on_step) tell([&] { events_.on_step(step, epoch, report); });
                 },
             .on_evaluation =
                 [&](auto step, auto epoch, const Evaluation& evaluation) {
                   steps.add(evaluation);
                   report_broken_files();
                   if (!std::isfinite(evaluation.loss)) warn(kDivergedEvaluation);
                   session_->announce_warnings(warnings_.are_there());
                   if (events_.on_evaluation) {
                     tell([&] { events_.on_evaluation(step, epoch, evaluation); });
                   }
                   return take(step, evaluation);
                 },
             .on_checkpoint = saving()});
  TrainingSummary summary = summary_of(steps);  // for which ranks meet
  expect_told("the training has come to its end");
  return summary;
}

// An event that fails ends the training as a stop does: after its step, with a checkpoint.
void Trainer::tell(const std::function<void()>& event) {
  if (!is_running_) return event();
  if (failure_) return;
  try {
    event();
  } catch (...) {
    failure_ = std::current_exception();
    own_stop_.request_stop();
  }
}

// Throws on all ranks where an event has failed on one, and says in which state the training is.
void Trainer::expect_told(const std::string& state) const {
  std::exception_ptr failure = failure_;
  try {
    if (failure_) std::rethrow_exception(failure_);
  } catch (const um::Error& error) {
    failure = std::make_exception_ptr(um::Error{error.what() + ("; " + state)});
  } catch (...) {
    // It is thrown as it is.
  }
  if (options_.ranks.are_used()) return throw_on_all(*options_.ranks.communicator, failure);
  if (failure) std::rethrow_exception(failure);
}

// If one rank stops, all stop; the first one has written the checkpoint before.
void Trainer::train_all(const TrainEvents& events) {
  const std::stop_token stop = options_.ranks.are_used() ? stop_of_ranks_.get_token() : stop_;
  try {
    train(*session_, data_, options_.training, events, stop);
  } catch (const Interrupted& interrupted) {
    tell_of_ranks();  // for which they meet
    expect_told(interrupted.what());
    throw;
  }
}

TrainingSummary Trainer::summary_of(const SummaryOfSteps& steps) {
  tell_of_ranks();
  TrainingSummary summary = steps.summary();
  summary.predicted_step = predicted_step();
  summary.budget = plans().budget;
  if (data_.broken) summary.broken_files = data_.broken->count();
  summary.near_peak = session_->near_peak();
  summary.weights_sha256 = session_->state().sha256();
  if (options_.ranks.are_used()) {
    expect_same_weights(options_.ranks, "weights", summary.weights_sha256);
    const auto broken = data_.broken ? data_.broken->all() : std::vector<std::string>{};
    summary.broken_files = distinct_of_ranks(*options_.ranks.communicator, broken);
  }
  return summary;
}

std::optional<um::Nanoseconds> Trainer::predicted_step() const {
  if (!steps_->are_timed()) return std::nullopt;
  return spillway::predicted_step(workload(), steps_->profiles(), plans(), memory());
}

AfterEvaluation Trainer::take(std::uint64_t step, const Evaluation& evaluation) {
  last_evaluation_ = {.step = step,
                      .loss = evaluation.loss,
                      .accuracy = evaluation.accuracy,
                      .top5 = evaluation.top5};
  bool is_best = take_evaluation(best_, step, evaluation, options_.network.reads_text());
  if (options_.ranks.are_used()) {  // whose plans may round otherwise
    share_first(*options_.ranks.communicator, is_best);
    share_first(*options_.ranks.communicator, best_);
  }
  if (is_best && options_.checkpoint.keep_best) {
    if (folder_) folder_->set_best(step);
    return AfterEvaluation::kSave;
  }
  if (!is_patience_over()) return AfterEvaluation::kGoOn;
  if (events_.on_early_stop) tell([&] { events_.on_early_stop(step, *best_); });
  return AfterEvaluation::kEnd;
}

bool Trainer::is_evaluated(std::uint64_t step) const {
  return last_evaluation_ && last_evaluation_->step == step;
}

bool Trainer::is_patience_over() const {
  return options_.patience > 0 && best_ && best_->evaluations_since >= options_.patience;
}

void Trainer::report_broken_files() {
  if (!data_.broken) return;
  for (const std::string& sentence : data_.broken->take_new()) warn(sentence + "; it is skipped");
}

// The first rank alone: it is the same on all.
void Trainer::warn_of_schedule() {
  if (!is_first(options_.ranks.communicator)) return;
  const auto sentence =
      schedule_warning(options_.training.learning_rate, options_.training.first_step,
                       last_step(options_.training, data_, options_.step.batch));
  if (sentence) warn(*sentence);
}

void Trainer::warn(const std::string& sentence) {
  warnings_.add(sentence);
  if (events_.on_warning) tell([&] { events_.on_warning(sentence); });
}

// What other ranks warn of, which are silent.
void Trainer::tell_of_ranks() {
  for (const std::string& sentence : warnings_.gather()) warn(sentence);
}

void Trainer::draw_state() {
  session_->state().initialise(options_.training.seed, options_.initial.rule,
                               zeroed_norms(options_));
}

// Work on the folder of checkpoints, which the first rank alone knows.
void Trainer::on_folder(const std::function<void()>& work) {
  if (!options_.ranks.are_used()) return work();
  std::optional<NothingLeft> nothing;
  on_first_rank(*options_.ranks.communicator, [&] {
    try {
      work();
    } catch (const NothingLeft& all) {
      nothing = all;
    }
  });
  bool is_over = nothing.has_value();
  share_first(*options_.ranks.communicator, is_over);
  if (is_over) throw nothing.value_or(NothingLeft{"nothing is left to train", {}});
  share_choice();
}

// Where the first rank goes on.
void Trainer::share_choice() {
  Communicator& communicator = *options_.ranks.communicator;
  share_first(communicator, options_.training.first_step);
  share_first(communicator, options_.training.evaluates_first);
  share_first(communicator, best_);
  share_first(communicator, last_evaluation_);
}

void Trainer::divide_state() {
  const RankOptions& ranks = options_.ranks;
  if (!ranks.are_used() || !ranks.divides_optimizer || ranks.communicator->ranks() == 1) return;
  slices_.emplace(*ranks.communicator, ranks.between_near_memory(), context_.device->memory());
  saves_slices_ = folder_.has_value();
  share_first(*ranks.communicator, saves_slices_);
  session_->state().divide_by(*slices_);
}

// On all ranks what the first one has.
void Trainer::start() {
  if (!options_.ranks.are_used()) return fill_state();
  Communicator& communicator = *options_.ranks.communicator;
  with_whole_state([&] { fill_state(); });
  options_.initial.values = {};
  session_->state().change_values([&](std::span<float> numbers) {
    communicator.broadcast(std::as_writable_bytes(numbers), 0);
  });
}

// Work of the first rank that reads or writes state of which each rank may have a slice.
void Trainer::with_whole_state(const std::function<void()>& work) {
  if (!slices_) return on_first_rank(*options_.ranks.communicator, work);
  slices_->on_first(work, [&] { session_->state().follow(); });
}

// Those of a file or of the user's; empty where all are drawn.
TensorSource Trainer::start_values() const {
  if (!weights_) return options_.initial.values;
  return [this](const std::string& name, std::span<float> tensor) { weights_->read(name, tensor); };
}

// The first rank's starting weights replace all others: ranks whose files differ are refused.
void Trainer::expect_same_start() const {
  if (!options_.ranks.are_used() || options_.ranks.communicator->ranks() == 1) return;
  std::string sha256;
  if (const TensorSource values = start_values()) {
    Sha256 digest;
    for (const StoredTensor& tensor : weight_tensors(workload().training())) {
      std::vector<float> numbers(element_count(tensor.shape));
      values(tensor.name, numbers);
      digest.update(std::as_bytes(std::span{numbers}));
    }
    sha256 = digest.hex();
  }
  expect_same_weights(options_.ranks, "starting weights", sha256);
}

// First values, or those of a file or of the checkpoint.
void Trainer::fill_state() {
  if (folder_ && folder_->chosen() != nullptr) {
    folder_->load(session_->state());
  } else if (weights_) {
    if (!weights_->drawn_layer().empty()) draw_state();
    session_->state().start_from(start_values());
  } else {
    draw_state();
    has_first_values_ = options_.initial.values != nullptr;
    if (has_first_values_) session_->state().start_from(options_.initial.values);
    options_.initial.values = {};  // which holds them all
  }
  if (folder_) folder_->set_plans(workload(), plans());
}

// Empty where nothing is to be saved.
std::function<void(std::uint64_t)> Trainer::saving() {
  if (saves_slices_) {
    return [this](std::uint64_t step) { with_whole_state([&] { save(step); }); };
  }
  if (!folder_) return {};
  return [this](std::uint64_t step) { save(step); };
}

void Trainer::save(std::uint64_t step) {
  Checkpoint moment;
  moment.settings = steps_->settings();
  moment.settings.planning->budget_bytes = plans().budget;
  moment.step = step;
  moment.best = best_;
  moment.last = last_evaluation_;
  moment.lacks_evaluation = step > 0 && !is_evaluated(step) &&
                            is_evaluation_due(options_.training, data_, options_.step.batch, step);
  folder_->save(std::move(moment), session_->state());
}

void Trainer::open_folder() {
  folder_.emplace(options_, data_);
  if (folder_->chosen() != nullptr) go_on_from(*folder_->chosen());
}

void Trainer::go_on_from(const ChosenCheckpoint& chosen) {
  const Checkpoint& checkpoint = chosen.manifest.checkpoint;
  const std::uint64_t done = checkpoint.step;
  for (const std::string& problem : chosen.passed_over) {
    warn(problem + "; going on from the checkpoint of step " + std::to_string(done));
  }
  options_.training.first_step = done;
  options_.training.evaluates_first =
      checkpoint.lacks_evaluation && options_.training.evaluate_every != 0;
  best_ = checkpoint.best;
  last_evaluation_ = checkpoint.last;
  if (best_ && options_.checkpoint.keep_best) folder_->set_best(best_->step);
  if (is_patience_over()) {
    throw folder_->nothing_left(
        workload(), "the last evaluations were not better than that of step " +
                        std::to_string(best_->step) + "; give a greater --early-stop to go on");
  }
  const bool is_over = done >= last_step(options_.training, data_, options_.step.batch);
  if (!is_over || options_.training.evaluates_first) return;
  throw folder_->nothing_left(workload(), "give more --steps or --epochs to go on");
}

// Returns the files to use instead of a planner's plans.
PlanPath Trainer::plan_files() const {
  const std::string& given = options_.planning.plan_file;
  if (given.empty()) return {};
  return [given](std::size_t /*step*/) { return given; };
}

// Returns the plans of the checkpoint to go on from, which the first rank reads.
KeptPlans Trainer::kept_plans() const {
  if (!options_.checkpoint.resume || !options_.planning.plan_file.empty()) return {};
  if (!folder_) return {options_.ranks, {}};
  return {options_.ranks, folder_->plan_paths(), folder_->chosen()->manifest.checkpoint.settings};
}

// All ranks go on, or none.
void Trainer::expect_going_on() const {
  if (is_stopped(options_.ranks, stop_)) throw Interrupted{};
}

}  // namespace spillway
