#include "src/train/train.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <string>

#include "src/data/batch_loader.h"
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

Interrupted stopped_after(std::uint64_t step, bool is_saved) {
  const std::string number = std::to_string(step);
  return Interrupted{
      is_saved ? "the checkpoint is of step " + number + ", and --resume goes on from there"
               : "step " + number + " was the last; with --checkpoint it would have been saved"};
}

LoaderOptions loader_options(const Session& session, std::size_t threads) {
  return {.threads = threads > 0 ? threads : usual_loader_threads(),
          .memory = &session.batch_memory()};
}

// The session reads batches ahead, which a loader owns: to be destroyed before it.
class SettledSession {
 public:
  explicit SettledSession(Session& session) : session_{session} {}
  SettledSession(const SettledSession&) = delete;
  SettledSession& operator=(const SettledSession&) = delete;
  ~SettledSession() { session_.settle(); }

 private:
  Session& session_;
};

// Nothing when `stop` was requested meanwhile.
std::optional<Evaluation> evaluate_unless_stopped(Session& session, const Dataset& data,
                                                  const std::stop_token& stop,
                                                  std::size_t loader_threads) {
  try {
    return evaluate(session, data, session.evaluation_batch(), stop, loader_threads);
  } catch (const Interrupted&) {
    if (!stop.stop_requested()) throw;  // it was another stop, which nobody wants saved
    return std::nullopt;
  }
}

}  // namespace

std::uint64_t last_step(const TrainOptions& options, const DatasetPair& data, std::size_t batch) {
  return earlier_end(options, steps_per_epoch(data.train->size(), batch));
}

void train(Session& session, const DatasetPair& data, const TrainOptions& options,
           const TrainEvents& events, const std::stop_token& stop) {
  const std::uint64_t steps_in_epoch = steps_per_epoch(data.train->size(), session.batch());
  const std::uint64_t last = earlier_end(options, steps_in_epoch);
  const std::uint64_t interval =
      options.checkpoint_every > 0 ? options.checkpoint_every : steps_in_epoch;
  if (last == 0 && events.on_checkpoint) events.on_checkpoint(0);
  BatchLoader loader{*data.train, session.batch(), options.seed, options.first_step,
                     loader_options(session, options.loader_threads)};
  const SettledSession settled{session};
  for (std::uint64_t step = options.first_step; step < last; ++step) {
    const Batch& batch = loader.next();
    StepReport report = session.train({.seed = options.seed,
                                       .step = step,
                                       .learning_rate = learning_rate(options.learning_rate, step),
                                       .batch = &batch,
                                       .next_batch = loader.peek()});
    report.data_wait = loader.waited();
    const std::uint64_t done = step + 1;
    const std::uint64_t epoch = step / steps_in_epoch + 1;
    if (events.on_step) events.on_step(done, epoch, report);
    expect_number(report.loss, done);
    bool ends_here = stop.stop_requested();
    if (!ends_here && done % steps_in_epoch == 0 && events.on_evaluation) {
      const auto evaluation =
          evaluate_unless_stopped(session, *data.test, stop, options.loader_threads);
      if (evaluation) events.on_evaluation(done, epoch, *evaluation);
      ends_here = !evaluation;
    }
    ends_here = ends_here || (done < last && stop.stop_requested());
    const bool is_due = done % interval == 0 || done == last || ends_here;
    if (is_due && events.on_checkpoint) events.on_checkpoint(done);
    if (ends_here) throw stopped_after(done, events.on_checkpoint != nullptr);
  }
}

Evaluation evaluate(Session& session, const Dataset& data, std::size_t batch,
                    const std::stop_token& stop, std::size_t loader_threads) {
  BatchLoader loader{data, batch, evaluation_order(data.size(), batch),
                     loader_options(session, loader_threads)};
  const SettledSession settled{session};
  double loss = 0;
  double correct = 0;
  double count = 0;
  for (std::uint64_t step = evaluation_steps(data.size(), batch); step > 0; --step) {
    if (stop.stop_requested()) throw Interrupted{};
    const Batch& batch_of_step = loader.next();
    const StepReport report =
        session.evaluate({.batch = &batch_of_step, .next_batch = loader.peek()});
    count += static_cast<double>(
        std::ranges::count_if(batch_of_step.labels, [](std::int32_t label) { return label >= 0; }));
    loss += static_cast<double>(report.loss);
    correct += static_cast<double>(report.correct);
  }
  return {.loss = loss / count, .accuracy = correct / count};
}

}  // namespace spillway
