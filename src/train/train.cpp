#include "src/train/train.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <string>

#include "src/io/data/batch_loader.h"
#include "src/train/session.h"
#include "um/error.h"

namespace spillway {
namespace {

constexpr std::uint64_t kForEver = std::numeric_limits<std::uint64_t>::max();

std::uint64_t earlier_end(const TrainOptions& options, std::uint64_t steps_in_epoch) {
  const std::uint64_t epochs = options.epochs.value_or(kForEver);
  const std::uint64_t by_epochs =
      epochs > kForEver / steps_in_epoch ? kForEver : epochs * steps_in_epoch;
  return std::min(by_epochs, options.steps.value_or(kForEver));
}

void expect_number(float loss, std::uint64_t step) {
  if (std::isfinite(loss)) return;
  throw um::Error{"the loss of step " + std::to_string(step) +
                  " is not a number: training has diverged; try a smaller --lr"};
}

// Returns nullopt when `is_stopped` returned true meanwhile.
std::optional<Evaluation> evaluate_unless_stopped(Session& session, const Dataset& data,
                                                  EvaluateOptions options,
                                                  const std::function<bool()>& is_stopped) {
  bool was_stopped = false;
  options.is_stopped = [&] { return was_stopped = is_stopped(); };
  try {
    return evaluate(session, data, options);
  } catch (const Interrupted&) {
    if (!was_stopped) throw;  // it was the session's own stop, after which nothing is saved
    return std::nullopt;
  }
}

// What follows each step of a training: evaluations, checkpoints, its end.
class Progress {
 public:
  Progress(Session& session, const DatasetPair& data, const TrainOptions& options,
           const TrainEvents& events, const std::function<bool()>& is_stopped)
      : session_{session},
        data_{data},
        options_{options},
        events_{events},
        is_stopped_{is_stopped ? is_stopped : [] { return false; }},
        steps_in_epoch_{steps_per_epoch(data.train->size(), session.batch())},
        last_{earlier_end(options, steps_in_epoch_)} {}

  [[nodiscard]] std::uint64_t last() const { return last_; }
  /// Of step number `done`, from 1.
  [[nodiscard]] std::uint64_t epoch(std::uint64_t done) const {
    return (done - 1) / steps_in_epoch_ + 1;
  }

  // Returns whether the training ends early. Throws Interrupted where it is stopped.
  bool end_step(std::uint64_t done) {
    bool is_stopped = is_stopped_();
    bool lacks_evaluation =
        events_.on_evaluation && is_evaluation_due(options_, data_, session_.batch(), done);
    AfterEvaluation wish = AfterEvaluation::kGoOn;
    if (!is_stopped && lacks_evaluation) {
      const std::optional<AfterEvaluation> wanted = evaluate_after(done);
      lacks_evaluation = !wanted;
      wish = wanted.value_or(wish);
      const bool goes_on = done < last_ && wish != AfterEvaluation::kEnd;
      is_stopped = !wanted || (goes_on && is_stopped_());
    }
    const bool is_due = done % checkpoint_interval() == 0 || done == last_ || is_stopped ||
                        wish != AfterEvaluation::kGoOn;
    if (is_due && events_.on_checkpoint) events_.on_checkpoint(done);
    if (is_stopped) throw stopped_after(done, lacks_evaluation);
    return wish == AfterEvaluation::kEnd;
  }

  // The evaluation that a training before was stopped in. Returns and throws as end_step().
  bool evaluate_late(std::uint64_t done) {
    const std::optional<AfterEvaluation> wish = evaluate_after(done);
    if (!wish) throw stopped_after(done, /*lacks_evaluation=*/true);
    const bool is_due = *wish != AfterEvaluation::kGoOn || done >= last_;
    if (is_due && events_.on_checkpoint) events_.on_checkpoint(done);
    return *wish == AfterEvaluation::kEnd;
  }

 private:
  // Says what is left of a training that is stopped after step `done`.
  [[nodiscard]] Interrupted stopped_after(std::uint64_t done, bool lacks_evaluation) const {
    const std::string number = std::to_string(done);
    if (!events_.on_checkpoint) {
      return Interrupted{"step " + number +
                         " was the last; with --checkpoint it would have been saved"};
    }
    const std::string saved = "the checkpoint is of step " + number + ", ";
    if (done < last_) return Interrupted{saved + "and --resume goes on from there"};
    return Interrupted{saved + (lacks_evaluation ? "the last one, and --resume evaluates it"
                                                 : "the last one: nothing is left to train")};
  }

  // Returns nullopt when it is stopped meanwhile.
  std::optional<AfterEvaluation> evaluate_after(std::uint64_t done) {
    const auto evaluation = evaluate_unless_stopped(
        session_, *data_.test,
        {.has_confusion = options_.has_confusion, .loader_threads = options_.loader_threads},
        is_stopped_);
    if (!evaluation) return std::nullopt;
    return events_.on_evaluation(done, epoch(done), *evaluation);
  }
  [[nodiscard]] std::uint64_t checkpoint_interval() const {
    return options_.checkpoint_every > 0 ? options_.checkpoint_every : steps_in_epoch_;
  }

  Session& session_;
  const DatasetPair& data_;
  const TrainOptions& options_;
  const TrainEvents& events_;
  std::function<bool()> is_stopped_;
  std::uint64_t steps_in_epoch_;
  std::uint64_t last_;
};

// Returns the times without the first, which warms up, in order.
std::vector<um::Nanoseconds> settled(std::vector<um::Nanoseconds> times) {
  if (times.size() > 1) times.erase(times.begin());
  std::ranges::sort(times);
  return times;
}

}  // namespace

std::uint64_t last_step(const TrainOptions& options, const DatasetPair& data, std::size_t batch) {
  return earlier_end(options, steps_per_epoch(data.train->size(), batch));
}

TrainOptions whole_training(TrainOptions options, const DatasetPair& data, std::size_t batch) {
  if (!options.steps && !options.epochs) options.epochs = 1;
  options.learning_rate =
      for_whole_training(options.learning_rate, last_step(options, data, batch));
  return options;
}

bool is_evaluation_due(const TrainOptions& options, const DatasetPair& data, std::size_t batch,
                       std::uint64_t step) {
  if (options.evaluate_every == 0) return false;
  const std::uint64_t interval =
      options.evaluate_every.value_or(steps_per_epoch(data.train->size(), batch));
  return step % interval == 0 ||
         (options.evaluate_every && step == last_step(options, data, batch));
}

void train(Session& session, const DatasetPair& data, const TrainOptions& options,
           const TrainEvents& events, const std::function<bool()>& is_stopped,
           const TrainingStart& start) {
  Progress progress{session, data, options, events, is_stopped};
  if (progress.last() == 0 && events.on_checkpoint) events.on_checkpoint(0);
  const bool is_late = start.evaluates_first && events.on_evaluation;
  if (is_late && progress.evaluate_late(start.step)) return;
  LoaderOptions loading = loader_options(session, options.loader_threads);
  loading.mixing = options.mixing;
  loading.part = session.own_samples();
  BatchLoader loader{*data.train, session.batch(), options.seed, start.step, loading};
  const SettledSession settled{session};
  for (std::uint64_t step = start.step; step < progress.last(); ++step) {
    const Batch& batch = loader.next();
    StepReport report = session.train({.seed = options.seed,
                                       .step = step,
                                       .learning_rate = learning_rate(options.learning_rate, step),
                                       .batch = &batch,
                                       .next_batch = loader.peek()});
    report.data_wait = loader.waited();
    if (events.on_step) events.on_step(step + 1, progress.epoch(step + 1), report);
    expect_number(report.loss, step + 1);
    if (progress.end_step(step + 1)) return;
  }
}

Evaluation evaluation_of(const LastEvaluation& last) {
  return {.loss = last.loss, .accuracy = last.accuracy, .top5 = last.top5};
}

void SummaryOfSteps::add(std::uint64_t step, const StepReport& report) {
  durations_.push_back(report.duration);
  if (summary_.steps_run++ == 0) summary_.first_loss = report.loss;
  summary_.steps = step;
  summary_.last_loss = report.loss;
  summary_.last_accuracy.reset();
  if (report.counted > 0) {
    summary_.last_accuracy =
        static_cast<double>(report.correct) / static_cast<double>(report.counted);
  }
  summary_.counters += report.counters;
  summary_.data_wait += report.data_wait;
  if (!report.stalled) return;
  summary_.stalled += *report.stalled;
  ++summary_.timed_steps;
}

TrainingSummary SummaryOfSteps::summary() const {
  TrainingSummary result = summary_;
  const std::vector<um::Nanoseconds> times = settled(durations_);
  if (times.empty()) return result;
  result.median_step = times[times.size() / 2];
  result.quick_step = times[times.size() / 10];
  result.slow_step = times[times.size() - 1 - times.size() / 10];
  return result;
}

}  // namespace spillway
