#include "src/train/trainer.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <set>
#include <span>
#include <system_error>
#include <utility>

#include "src/io/data/batch_loader.h"
#include "src/io/file_digest.h"
#include "src/plan/predicted_step.h"
#include "src/plan/sub_batch_plans.h"
#include "src/program/sub_step.h"
#include "src/ranks/collectives.h"
#include "src/train/checkpoint/state.h"
#include "src/train/rank_agreement.h"
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
  expect_ranks_agree(options_, data_, context_);
  if (options_.ranks.join_devices) {
    device_communicator_ = options_.ranks.join_devices(context_);
    options_.ranks.device_communicator = *device_communicator_;
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
  is_saved_ = !options_.checkpoint.folder.empty() && !options_.checkpoint.only_looks;
  broadcast(communicator(), is_saved_);
  on_folder([&] {
    std::error_code ignored;
    const bool is_in_the_way =
        is_saved_ && std::filesystem::exists(options_.checkpoint.folder, ignored);
    if (options_.checkpoint.resume || is_in_the_way) open_folder();
  });
  steps_->cut_batch();
  expect_values_to_normalize(options_.network, options_.step.batch, workload().sub_batches());
  steps_->plan(plan_files(), kept_plans());
  expect_going_on();
  // A training that is refused leaves no folder behind.
  on_folder([&] {
    if (!folder_ && is_saved_) open_folder();
  });
  warn_of_schedule();
  ram_before_ = um::resident_memory();
  // A step under way goes on to its end.
  session_.emplace(context_, workload(), plans(), memory(), steps_->space(), std::stop_token{},
                   options_.ranks);
  expect_going_on();
  start();
}

TrainingSummary Trainer::run() {
  is_running_ = true;
  SummaryOfSteps steps{options_.training.first_step};
  train_all({.on_step =
                 [&](auto step, auto epoch, const StepReport& report) {
                   steps.add(step, report);
                   report_broken_files();
                   if (!report.problem.empty()) warn(report.problem);
                   if (events_.on_step) tell([&] { events_.on_step(step, epoch, report); });
                 },
             .on_evaluation =
                 [&](auto step, auto epoch, const Evaluation& evaluation) {
                   steps.add(evaluation);
                   report_broken_files();
                   if (!std::isfinite(evaluation.loss)) warn(kDivergedEvaluation);
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
  throw_on_all(communicator(), failure);
}

// If one rank stops, all stop; rank zero has written the checkpoint before.
void Trainer::train_all(const TrainEvents& events) {
  try {
    train(*session_, data_, options_.training, events, [this] { return any_rank_stops(); });
  } catch (const Interrupted& interrupted) {
    tell_of_ranks();
    expect_told(interrupted.what());
    throw;
  }
}

// Returns whether a stop is requested on any rank. Tells what the other ranks warn of.
bool Trainer::any_rank_stops() {
  struct News {
    bool is_stopped = false;
    bool has_warnings = false;
  };
  const auto all = all_gather_values(communicator(), News{.is_stopped = stop_.stop_requested(),
                                                          .has_warnings = warnings_.are_there()});
  if (std::ranges::any_of(all, &News::has_warnings)) tell_of_ranks();
  return std::ranges::any_of(all, &News::is_stopped);
}

TrainingSummary Trainer::summary_of(const SummaryOfSteps& steps) {
  tell_of_ranks();
  TrainingSummary summary = steps.summary();
  summary.predicted_step = predicted_step();
  summary.budget = plans().budget;
  summary.near_peak = session_->near_peak();
  summary.weights_sha256 = session_->state().sha256();
  expect_same_weights(communicator(), "weights", summary.weights_sha256);
  std::set<std::string> broken;
  const auto own = data_.broken ? data_.broken->all() : std::vector<std::string>{};
  for (const auto& of_rank : all_gather_lists(communicator(), own)) {
    broken.insert(of_rank.begin(), of_rank.end());
  }
  summary.broken_files = broken.size();
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
  broadcast(communicator(), is_best);  // other ranks' plans may round otherwise
  broadcast(communicator(), best_);
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

// The warning is the same on all ranks.
void Trainer::warn_of_schedule() {
  if (communicator().rank() != 0) return;
  const auto sentence =
      schedule_warning(options_.training.learning_rate, options_.training.first_step,
                       last_step(options_.training, data_, options_.step.batch));
  if (sentence) warn(*sentence);
}

void Trainer::warn(const std::string& sentence) {
  warnings_.add(sentence);
  if (events_.on_warning) tell([&] { events_.on_warning(sentence); });
}

// Tells what the other ranks warn of, which are silent. All ranks call it.
void Trainer::tell_of_ranks() {
  for (const std::string& sentence : warnings_.gather()) warn(sentence);
}

void Trainer::draw_state() {
  session_->state().initialise(options_.training.seed, options_.initial.rule,
                               zeroed_norms(options_));
}

// Calls `work` on rank zero, which alone has the folder of checkpoints, and tells all ranks where
// to go on. Throws NothingLeft on all.
void Trainer::on_folder(const std::function<void()>& work) {
  std::optional<NothingLeft> nothing;
  on_rank_zero(communicator(), [&] {
    try {
      work();
    } catch (const NothingLeft& all) {
      nothing = all;
    }
  });
  bool is_over = nothing.has_value();
  broadcast(communicator(), is_over);
  if (is_over) throw nothing.value_or(NothingLeft{"nothing is left to train", {}});
  broadcast(communicator(), options_.training.first_step);
  broadcast(communicator(), options_.training.evaluates_first);
  broadcast(communicator(), best_);
  broadcast(communicator(), last_evaluation_);
}

// Fills the state on rank zero and broadcasts it.
void Trainer::start() {
  session_->with_whole_state([&] { fill_state(); });
  options_.initial.values = {};  // frees the numbers that the source holds
  if (communicator().size() == 1) return;
  session_->state().change_values([&](std::span<float> numbers) {
    communicator().broadcast(std::as_writable_bytes(numbers), 0);
  });
}

// Those of a file or of the user's; empty where all are drawn.
TensorSource Trainer::start_values() const {
  if (!weights_) return options_.initial.values;
  return [this](const std::string& name, std::span<float> tensor) { weights_->read(name, tensor); };
}

// Rank zero's starting weights replace all others: ranks whose files differ are refused.
void Trainer::expect_same_start() const {
  if (communicator().size() == 1) return;
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
  expect_same_weights(communicator(), "starting weights", sha256);
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
  }
  if (folder_) folder_->set_plans(workload(), plans());
}

// Empty where nothing is to be saved.
std::function<void(std::uint64_t)> Trainer::saving() {
  if (!is_saved_) return {};
  return [this](std::uint64_t step) { session_->with_whole_state([&] { save(step); }); };
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

// Returns the plans of the checkpoint to go on from, which rank zero reads.
KeptPlans Trainer::kept_plans() const {
  if (!options_.checkpoint.resume || !options_.planning.plan_file.empty()) return {};
  if (!folder_) return {communicator(), {}};
  return {communicator(), folder_->plan_paths(), folder_->chosen()->manifest.checkpoint.settings};
}

// All ranks go on, or none.
void Trainer::expect_going_on() const {
  if (any_rank(communicator(), stop_.stop_requested())) throw Interrupted{};
}

}  // namespace spillway
