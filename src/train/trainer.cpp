#include "src/train/trainer.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <filesystem>
#include <set>
#include <span>
#include <system_error>
#include <utility>

#include "src/io/data/batch_loader.h"
#include "src/io/file_digest.h"
#include "src/plan/micro_batch_choice.h"
#include "src/plan/predicted_step.h"
#include "src/program/combinations.h"
#include "src/ranks/collectives.h"
#include "src/train/checkpoint/state.h"
#include "um/machine/available_memory.h"

namespace spillway {
namespace {

// Compares the SHA-256 of weights, empty where there are none. Throws um::Error on all ranks if
// they differ; the sentence calls them `name`.
void expect_same_weights(Communicator& communicator, const std::string& name,
                         const std::string& sha256) {
  const std::array texts{NamedText{.name = name, .text = sha256}};
  expect_agreement(communicator, texts);
}

}  // namespace

Trainer::Trainer(ExecutionContext context, TrainerOptions options, TrainerEvents events,
                 std::stop_token stop)
    : Trainer{[&] { return std::move(context); }, std::move(options), std::move(events),
              std::move(stop)} {}

Trainer::Trainer(const std::function<ExecutionContext()>& open_context, TrainerOptions options,
                 TrainerEvents events, std::stop_token stop)
    : events_{std::move(events)},
      users_stop_{std::move(stop), [own = own_stop_]() mutable { own.request_stop(); }},
      first_values_{std::exchange(options.initial.values, {})},
      inputs_{open_inputs(open_context, std::move(options), events_, stop_)},
      warnings_{communicator()},
      steps_{inputs_.options, inputs_.context, events_of_planning(), stop_},
      zeroed_norms_{zeroed_norms(inputs_.options)},
      weights_{open_weights()},
      is_saved_{!this->options().checkpoint.folder.empty() &&
                !this->options().checkpoint.only_looks} {
  expect_going_on();
  expect_same_start();
  broadcast(communicator(), is_saved_);
  open_folder(/*must_be_new=*/false);
  plan_steps();
  expect_going_on();
  open_folder(/*must_be_new=*/true);  // a training that is refused leaves no folder behind
  warn_of_schedule();
  ram_before_ = um::resident_memory();
  // A step under way goes on to its end.
  session_.emplace(inputs_.context, workload(), plans(), memory(), space(), std::stop_token{},
                   this->options().ranks);
  expect_going_on();
  start();
}

TrainingSummary Trainer::run() {
  is_running_ = true;
  SummaryOfSteps steps{steps_before()};
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
    train(
        *session_, data(), options().training, events, [this] { return any_rank_stops(); },
        progress_.start);
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
  const auto own = data().broken ? data().broken->all() : std::vector<std::string>{};
  for (const auto& of_rank : all_gather_lists(communicator(), own)) {
    broken.insert(of_rank.begin(), of_rank.end());
  }
  summary.broken_files = broken.size();
  return summary;
}

TrainerEvents Trainer::events_of_planning() {
  TrainerEvents events = events_;
  events.on_warning = [this](const std::string& sentence) { warn(sentence); };
  return events;
}

std::optional<WeightFile> Trainer::open_weights() const {
  const InitialOptions& initial = options().initial;
  if (initial.weights.empty()) return std::nullopt;
  return WeightFile{
      initial.weights,
      NamedNetwork{.name = options().network.name, .arrays = weight_tensors(workload().training())},
      initial.has_new_head};
}

std::uint64_t Trainer::last_step() const {
  return spillway::last_step(options().training, data(), options().step.batch);
}

std::optional<um::Nanoseconds> Trainer::predicted_step() const {
  if (!steps_.are_timed()) return std::nullopt;
  return spillway::predicted_step(workload(), steps_.profile(), plans(), memory());
}

AfterEvaluation Trainer::take(std::uint64_t step, const Evaluation& evaluation) {
  progress_.last = {.step = step,
                    .loss = evaluation.loss,
                    .accuracy = evaluation.accuracy,
                    .top5 = evaluation.top5};
  bool is_best = take_evaluation(progress_.best, step, evaluation, options().network.reads_text());
  broadcast(communicator(), is_best);  // other ranks' plans may round otherwise
  broadcast(communicator(), progress_.best);
  if (is_best && options().checkpoint.keep_best) {
    if (folder_) folder_->set_best(step);
    return AfterEvaluation::kSave;
  }
  if (!is_patience_over()) return AfterEvaluation::kGoOn;
  if (events_.on_early_stop) tell([&] { events_.on_early_stop(step, *progress_.best); });
  return AfterEvaluation::kEnd;
}

bool Trainer::is_patience_over() const {
  return options().patience > 0 && progress_.best &&
         progress_.best->evaluations_since >= options().patience;
}

void Trainer::report_broken_files() {
  if (!data().broken) return;
  for (const std::string& sentence : data().broken->take_new()) warn(sentence + "; it is skipped");
}

// The warning is the same on all ranks.
void Trainer::warn_of_schedule() {
  if (communicator().rank() != 0) return;
  const auto sentence =
      schedule_warning(options().training.learning_rate, steps_before(), last_step());
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
  session_->state().initialise(options().training.seed, options().initial.rule, zeroed_norms_);
}

// Fills the state on rank zero and broadcasts it.
void Trainer::start() {
  session_->with_whole_state([&] { fill_state(); });
  first_values_ = {};  // frees the numbers that the source holds
  if (communicator().size() == 1) return;
  session_->state().change_values([&](std::span<float> numbers) {
    communicator().broadcast(std::as_writable_bytes(numbers), 0);
  });
}

// Those of a file or of the user's; empty where all are drawn.
TensorSource Trainer::start_values() const {
  if (!weights_) return first_values_;
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
    has_first_values_ = first_values_ != nullptr;
    if (has_first_values_) session_->state().start_from(first_values_);
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
  moment.settings = steps_.settings();
  moment.settings.planning->budget_bytes = plans().budget;
  moment.step = step;
  moment.best = progress_.best;
  moment.last = progress_.last;
  const bool is_evaluated = progress_.last && progress_.last->step == step;
  moment.lacks_evaluation =
      step > 0 && !is_evaluated &&
      is_evaluation_due(options().training, data(), options().step.batch, step);
  folder_->save(std::move(moment), session_->state());
}

void Trainer::go_on_from(const ChosenCheckpoint& chosen) {
  const Checkpoint& checkpoint = chosen.manifest.checkpoint;
  const std::uint64_t done = checkpoint.step;
  for (const std::string& problem : chosen.passed_over) {
    warn(problem + "; going on from the checkpoint of step " + std::to_string(done));
  }
  const bool evaluates_first =
      checkpoint.lacks_evaluation && options().training.evaluate_every != 0;
  progress_ = {.start = {.step = done, .evaluates_first = evaluates_first},
               .best = checkpoint.best,
               .last = checkpoint.last};
  if (checkpoint.best && options().checkpoint.keep_best) folder_->set_best(checkpoint.best->step);
  if (is_patience_over()) {
    throw folder_->nothing_left(workload(),
                                "the last evaluations were not better than that of step " +
                                    std::to_string(checkpoint.best->step) +
                                    "; give a greater --early-stop to go on");
  }
  if (done < last_step() || evaluates_first) return;
  throw folder_->nothing_left(workload(), "give more --steps or --epochs to go on");
}

// Opens the folder of checkpoints on rank zero, which alone has it, if there is one to go on from
// or one in the way; with `must_be_new`, also makes one that is not there. Tells all ranks where to
// go on. Throws NothingLeft on all.
void Trainer::open_folder(bool must_be_new) {
  std::optional<NothingLeft> nothing;
  on_rank_zero(communicator(), [&] {
    const CheckpointOptions& wanted = options().checkpoint;
    std::error_code ignored;
    const bool is_in_the_way = is_saved_ && std::filesystem::exists(wanted.folder, ignored);
    if (folder_ || !(must_be_new ? is_saved_ : wanted.resume || is_in_the_way)) return;
    folder_.emplace(options(), data());
    try {
      if (folder_->chosen() != nullptr) go_on_from(*folder_->chosen());
    } catch (const NothingLeft& all) {
      nothing = all;
    }
  });
  bool is_over = nothing.has_value();
  broadcast(communicator(), is_over);
  if (is_over) throw nothing.value_or(NothingLeft{"nothing is left to train", {}});
  broadcast(communicator(), progress_.start);
  broadcast(communicator(), progress_.best);
  broadcast(communicator(), progress_.last);
}

// Cuts the batch, and plans its steps: by files, by what the checkpoint kept, or anew.
void Trainer::plan_steps() {
  steps_.cut_batch();
  expect_values_to_normalize(options().network, workload().micro_batches());
  steps_.plan(options().planning.plan_file, kept_plans());
}

// Returns the plans of the checkpoint to go on from, which rank zero reads.
KeptPlans Trainer::kept_plans() const {
  if (!options().checkpoint.resume || !options().planning.plan_file.empty()) return {};
  if (!folder_) return {communicator(), {}};
  return {communicator(), folder_->plan_paths(), folder_->chosen()->manifest.checkpoint.settings};
}

// All ranks go on, or none.
void Trainer::expect_going_on() const {
  if (any_rank(communicator(), stop_.stop_requested())) throw Interrupted{};
}

}  // namespace spillway
