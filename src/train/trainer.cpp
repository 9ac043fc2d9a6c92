#include "src/train/trainer.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <filesystem>
#include <span>
#include <system_error>
#include <utility>

#include "nets/residual_norms.h"
#include "nets/text/network_text.h"
#include "src/data/first_samples.h"
#include "src/data/open_dataset.h"
#include "src/plan/predicted_step.h"
#include "src/plan/sub_batch_choice.h"
#include "src/step/batch_norm_values.h"
#include "src/files/sha256.h"
#include "src/ranks/agreement.h"
#include "src/train/checkpoint_key.h"
#include "src/train/parts/first_rank.h"
#include "src/train/text_model.h"

namespace spillway {

using um::Bytes;

namespace {

DatasetPair open_data(const TrainerOptions& options) {
  DatasetPair data = open_dataset(options.data, dataset_options(options, options.step.batch));
  if (options.train_samples > 0) {
    data.train = first_samples(std::move(data.train), options.train_samples);
    expect_batch(data.train->size(), options.step.batch);
  }
  return data;
}

void expect_trainable_by_ranks(const TrainerOptions& options) {
  if (!options.ranks.are_used()) return;
  static_cast<void>(shard_batch(options.ranks, options.step.batch));
  if (!SubBatchChoice{options.planning.sub_batch}.is_off()) {
    throw um::Error{"each shard of a batch is a sub-batch; leave out --sub-batch"};
  }
  if (!options.planning.plan_file.empty() || !options.planning.profile_file.empty()) {
    throw um::Error{
        "plans and profiles in files are of one rank; ranks measure and plan for themselves"};
  }
  if (options.training.mixing.is_on()) {
    throw um::Error{
        "mixup and CutMix mix images of different shards, which are on different ranks; leave them "
        "out"};
  }
  if (options.planning.planner == "on-demand") {
    throw um::Error{
        "page faults alone (--planner on-demand) go with whole batches only; leave out --ranks and "
        "--shards"};
  }
}

// Enough to tell one data set from another without reading all of it.
std::string summary_of(const DatasetPair& data) {
  std::string text;
  for (const Dataset* const set : {data.train.get(), data.test.get()}) {
    if (set == nullptr) continue;
    std::vector<float> image(set->image().elements());
    text += set->name() + ", " + std::to_string(set->size()) + " samples, " +
            std::to_string(set->classes()) + " classes";
    for (const std::size_t index : {std::size_t{0}, set->size() / 2, set->size() - 1}) {
      set->read(index, image);
      text += ", " + sha256_of(std::as_bytes(std::span{image})).substr(0, 8);
    }
    text += "; ";
  }
  return text;
}

TrainerOptions checked(TrainerOptions options) {
  expect_sub_batch(options.planning.sub_batch);
  expect_trainable_by_ranks(options);
  // The first rank alone writes files.
  if (!is_first(options.ranks.communicator)) options.checkpoint.folder.clear();
  if (const auto file = file_of_one_step(options.planning, options.step.batch)) {
    throw um::Error{"a " + std::string{*file} +
                    " file is about one step, but a batch in sub-batches runs several; leave the "
                    "file out, or turn sub-batches off"};
  }
  if (!options.weights.empty() && options.checkpoint.resume) {
    throw um::Error{"a training that goes on has the weights of its checkpoint, not those of " +
                    options.weights};
  }
  expect_mixable(options);
  options.step.mixes_labels = options.training.mixing.is_on();
  return options;
}

// Those whose gamma begins as 0.
std::vector<std::string> zeroed_norms(const TrainerOptions& options) {
  if (!options.has_zero_gamma) return {};
  std::vector<std::string> norms = nets::residual_norms(options.network);
  if (!norms.empty()) return norms;
  throw um::Error{"network " + options.network.name +
                  " has no residual block that ends with a batch norm; leave out --zero-gamma"};
}

// With an end, and the learning rate's schedule for so long a training.
TrainOptions whole_training(TrainOptions options, const DatasetPair& data, std::size_t batch) {
  if (!options.steps && !options.epochs) options.epochs = 1;
  options.learning_rate =
      for_whole_training(options.learning_rate, last_step(options, data, batch));
  return options;
}

}  // namespace

Trainer::Trainer(ExecutionContext context, TrainerOptions options, TrainerEvents events,
                 std::stop_token stop)
    : Trainer{[&] { return std::move(context); }, std::move(options), std::move(events),
              std::move(stop)} {}

Trainer::Trainer(const std::function<ExecutionContext()>& open_context, TrainerOptions options,
                 TrainerEvents events, std::stop_token stop)
    : options_{checked(std::move(options))},
      events_{std::move(events)},
      stop_{std::move(stop)},
      data_{open_data(options_)},
      context_{open_context()} {
  options_.training = whole_training(options_.training, data_, options_.step.batch);
  options_.training.first_step = 0;
  expect_ranks_agree();
  expect_evaluation(options_, data_);
  steps_.emplace(options_, context_, events_, stop_);
  static_cast<void>(zeroed_norms(options_));  // throws now rather than after measuring
  expect_going_on();
  if (!options_.weights.empty()) {
    weights_.emplace(options_.weights,
                     NamedNetwork{.name = options_.network.name,
                                  .arrays = weight_tensors(workload().training())},
                     options_.has_new_head);
  }
  const std::string& folder = options_.checkpoint.folder;
  std::error_code ignored;
  const bool is_there = !folder.empty() && std::filesystem::exists(folder, ignored);
  on_folder([&] {
    if (options_.checkpoint.resume || is_there) open_folder();
  });
  steps_->cut_batch();
  expect_values_to_normalize(options_.network, options_.step.batch, workload().sub_batches());
  steps_->plan(plan_files());
  expect_going_on();
  // A training that is refused leaves no folder behind.
  on_folder([&] {
    if (!folder_ && !folder.empty()) open_folder();
  });
  session_.emplace(context_, workload(), plans(), options_.memory.mode, options_.memory.space,
                   stop_, StopAfter::kStep, options_.ranks);
  expect_going_on();
  start();
}

TrainingSummary Trainer::run() {
  SummaryOfSteps steps{options_.training.first_step};
  train(*session_, data_, options_.training,
        {.on_step =
             [&](auto step, auto epoch, const StepReport& report) {
               steps.add(step, report);
               if (report.is_last_wanted) stop_of_ranks_.request_stop();
               report_broken_files();
               if (events_.on_warning && !report.problem.empty())
                 events_.on_warning(report.problem);
               if (events_.on_step) events_.on_step(step, epoch, report);
             },
         .on_evaluation =
             [&](auto step, auto epoch, const Evaluation& evaluation) {
               steps.add(evaluation);
               report_broken_files();
               if (events_.on_warning && !std::isfinite(evaluation.loss)) {
                 events_.on_warning(kDivergedEvaluation);
               }
               if (events_.on_evaluation) events_.on_evaluation(step, epoch, evaluation);
               return take(step, evaluation);
             },
         .on_checkpoint = saving()},
        options_.ranks.are_used() ? stop_of_ranks_.get_token() : stop_);
  TrainingSummary summary = steps.summary();
  summary.predicted_step =
      predicted_step(workload(), steps_->profiles(), plans(), options_.memory.mode);
  summary.budget = plans().budget;
  if (data_.broken) summary.broken_files = data_.broken->count();
  summary.near_peak = session_->near_peak();
  summary.weights_sha256 = session_->state().sha256();
  if (options_.ranks.are_used()) {
    const std::array texts{NamedText{.name = "weights", .text = summary.weights_sha256}};
    expect_agreement(*options_.ranks.communicator, texts);
  }
  return summary;
}

AfterEvaluation Trainer::take(std::uint64_t step, const Evaluation& evaluation) {
  evaluated_ = step;
  const bool is_best = take_evaluation(best_, step, evaluation, options_.network.reads_text());
  if (is_best && options_.checkpoint.keep_best && folder_) {
    folder_->set_best(step);
    return AfterEvaluation::kSave;
  }
  if (!is_patience_over()) return AfterEvaluation::kGoOn;
  if (events_.on_early_stop) events_.on_early_stop(step, *best_);
  return AfterEvaluation::kEnd;
}

bool Trainer::is_patience_over() const {
  return options_.patience > 0 && best_ && best_->evaluations_since >= options_.patience;
}

void Trainer::report_broken_files() {
  if (!data_.broken || !events_.on_warning) return;
  for (const std::string& sentence : data_.broken->take_new()) {
    events_.on_warning(sentence + "; it is skipped");
  }
}

void Trainer::draw_state() {
  session_->state().initialise(options_.training.seed, options_.initialisation,
                               zeroed_norms(options_));
}

// What ranks must have in common; a mistake shows before anything is measured.
void Trainer::expect_ranks_agree() {
  if (!options_.ranks.are_used()) return;
  std::vector<NamedText> texts = options_.ranks.agreement;
  texts.push_back({.name = "network", .text = nets::to_text(options_.network)});
  texts.push_back({.name = "data", .text = summary_of(data_)});
  texts.push_back({.name = "threads", .text = std::to_string(context_.threads)});
  expect_agreement(*options_.ranks.communicator, texts);
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
  if (is_over) throw nothing.value_or(NothingLeft{"nothing is left to train", 0, {}});
  share_choice();
}

// Where the first rank goes on.
void Trainer::share_choice() {
  struct Choice {
    std::uint64_t first_step = 0;
    bool evaluates_first = false;
    bool has_best = false;
    BestEvaluation best;
  };
  Choice choice{.first_step = options_.training.first_step,
                .evaluates_first = options_.training.evaluates_first,
                .has_best = best_.has_value(),
                .best = best_.value_or(BestEvaluation{})};
  share_first(*options_.ranks.communicator, choice);
  options_.training.first_step = choice.first_step;
  options_.training.evaluates_first = choice.evaluates_first;
  best_ = choice.has_best ? std::optional{choice.best} : std::nullopt;
}

// On all ranks what the first one has.
void Trainer::start() {
  if (!options_.ranks.are_used()) return fill_state();
  Communicator& communicator = *options_.ranks.communicator;
  on_first_rank(communicator, [&] { fill_state(); });
  options_.first_values = {};
  communicator.broadcast(session_->state().near_bytes(), 0);
}

// First values, or those of a file or of the checkpoint.
void Trainer::fill_state() {
  if (chosen_) {
    folder_->load(*chosen_, session_->state());
  } else if (weights_) {
    if (!weights_->drawn_layer().empty()) draw_state();
    session_->state().start_from(
        [&](const std::string& name, std::span<float> tensor) { weights_->read(name, tensor); });
  } else {
    draw_state();
    has_first_values_ = options_.first_values != nullptr;
    if (has_first_values_) session_->state().start_from(options_.first_values);
    options_.first_values = {};  // which holds them all
  }
  if (!folder_) return;
  const std::vector<RepeatedStep>& steps = workload().training_steps();
  for (std::size_t i = 0; i < steps.size(); ++i) {
    folder_->set_plan(i, steps.size(), plans().training[i], steps[i].step.graph);
  }
}

// Empty where nothing is to be saved.
std::function<void(std::uint64_t)> Trainer::saving() {
  if (!folder_) return {};
  return [this](std::uint64_t step) { save(step); };
}

void Trainer::save(std::uint64_t step) {
  const prefetch::SubBatches& batches = workload().sub_batches();
  const bool is_cut = batches.steps > 1 && !options_.ranks.are_used();
  folder_->save(
      {.key = key_,
       .settings = {.learning_rate = options_.training.learning_rate,
                    .optimizer = options_.step.optimizer,
                    .label_smoothing = options_.step.label_smoothing,
                    .mixing = options_.training.mixing,
                    .average_decay = options_.step.average_decay,
                    .frozen = options_.step.frozen,
                    .threads = context_.threads,
                    .precision = context_.precision,
                    .deterministic = context_.deterministic,
                    .sub_batch = is_cut ? std::optional{batches.size} : std::nullopt,
                    .shards = options_.ranks.are_used() ? std::optional{options_.ranks.shards}
                                                        : std::nullopt,
                    .dropout = nets::dropout_of(options_.network),
                    .images = is_image_folder(options_.data) ? std::optional{options_.images}
                                                             : std::nullopt,
                    .evaluations = {.every = options_.training.evaluate_every,
                                    .patience = options_.patience,
                                    .keeps_best = options_.checkpoint.keep_best},
                    .train_samples = options_.train_samples},
       .step = step,
       .best = best_,
       .network_file = text_model_ ? std::string{} : nets::to_text(options_.network),
       .text_model = text_model_,
       .class_names = data_.class_names,
       .lacks_evaluation = step > 0 && step != evaluated_ &&
                           is_evaluation_due(options_.training, data_, options_.step.batch, step)},
      session_->state());
}

void Trainer::open_folder() {
  const CheckpointOptions& checkpoint = options_.checkpoint;
  if (checkpoint.resume) expect_checkpoint(checkpoint.folder);  // before the folder is made
  folder_.emplace(checkpoint.folder, checkpoint.keep);
  key_ = make_key(options_.network, {.name = options_.data, .sha256 = content_sha256(data_)},
                  options_.step.batch, options_.training.seed);
  text_model_ = text_model_of(options_.network, options_.tokenizer);
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
  options_.training.evaluates_first =
      chosen_->manifest.checkpoint.lacks_evaluation && options_.training.evaluate_every != 0;
  best_ = chosen_->manifest.checkpoint.best;
  if (best_) folder_->set_best(best_->step);
  if (is_patience_over()) {
    throw nothing_left("the last evaluations were not better than that of step " +
                       std::to_string(best_->step) + "; give a greater --early-stop to go on");
  }
  const bool is_over = done >= last_step(options_.training, data_, options_.step.batch);
  if (!is_over || options_.training.evaluates_first) return;
  throw nothing_left("give more --steps or --epochs to go on");
}

NothingLeft Trainer::nothing_left(const std::string& advice) const {
  const Checkpoint& checkpoint = chosen_->manifest.checkpoint;
  const std::filesystem::path folder = options_.checkpoint.folder;
  return {"nothing is left to train: the checkpoint in " + folder.string() + " is of step " +
              std::to_string(checkpoint.step) + "; " + advice,
          checkpoint.step,
          weights_sha256(folder / chosen_->manifest.tensors.name, workload().training())};
}

// Those to use instead of a planner's plans.
PlannedSteps::PlanPath Trainer::plan_files() const {
  const std::string& given = options_.planning.plan_file;
  if (!given.empty()) return [given](std::size_t /*step*/) { return given; };
  // Of another number of ranks the steps are others.
  if (!options_.checkpoint.resume || options_.ranks.are_used()) return {};
  return [this](std::size_t step) { return folder_->plan_path(*chosen_, step); };
}

void Trainer::expect_going_on() const {
  if (stop_.stop_requested()) throw Interrupted{};
}

}  // namespace spillway
