#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "src/io/data/dataset.h"
#include "src/io/data/mixing.h"
#include "src/ops/learning_rate.h"
#include "src/train/checkpoint/checkpoint.h"
#include "src/train/evaluation.h"
#include "src/train/session.h"
#include "um/bytes.h"
#include "um/device.h"

namespace spillway {

/// The point from which a training begins, or goes on.
struct TrainingStart {
  std::uint64_t step = 0;  ///< steps done before
  /// The evaluation that was due after these is still to be made: it was stopped.
  bool evaluates_first = false;
};

/// How long and how fast to train. Steps and epochs count from the very beginning of the training,
/// also when it goes on from a checkpoint.
struct TrainOptions {
  std::optional<std::uint64_t> steps;   ///< stop after so many
  std::optional<std::uint64_t> epochs;  ///< stop after so many; the first of both limits counts
  LearningRateOptions learning_rate;
  std::uint64_t seed = 1;              ///< of data order and dropout
  std::uint64_t checkpoint_every = 0;  ///< steps; 0: at the end of each epoch
  /// Steps between two evaluations on the test split, with one at the end; 0: never. Nothing: at
  /// the end of each epoch.
  std::optional<std::uint64_t> evaluate_every = {};
  bool has_confusion = false;      ///< Evaluation::confusion
  std::size_t loader_threads = 0;  ///< that load batches ahead; 0: usual_loader_threads()
  MixOptions mixing = {};          ///< of images to learn from, drawn by `seed`
};

/// What is to happen after an evaluation, beside what is due anyway.
enum class AfterEvaluation : std::uint8_t {
  kGoOn,
  kSave,  ///< write a checkpoint: this is the best so far
  kEnd    ///< write a checkpoint, and end the training
};

/// What train() reports as it goes, to whoever listens: each may be empty. `step` and `epoch` count
/// what is done, from 1.
struct TrainEvents {
  std::function<void(std::uint64_t step, std::uint64_t epoch, const StepReport&)> on_step;
  std::function<AfterEvaluation(std::uint64_t step, std::uint64_t epoch, const Evaluation&)>
      on_evaluation;
  /// The state may be saved now: every checkpoint_every steps (or each epoch), at the end, after
  /// an evaluation that asks for it, where there are no steps at all, and when a stop was
  /// requested.
  std::function<void(std::uint64_t step)> on_checkpoint;
};

/// The step with which a training in batches of `batch` ends.
[[nodiscard]] std::uint64_t last_step(const TrainOptions& options, const DatasetPair& data,
                                      std::size_t batch);

/// `options` with an end, one epoch where they have none, and the learning rate's schedule for so
/// long a training.
[[nodiscard]] TrainOptions whole_training(TrainOptions options, const DatasetPair& data,
                                          std::size_t batch);

/// Whether an evaluation follows step number `step`, from 1, of a training in batches of `batch`.
[[nodiscard]] bool is_evaluation_due(const TrainOptions& options, const DatasetPair& data,
                                     std::size_t batch, std::uint64_t step);

/// Trains `session` on `data`: a step a batch, each epoch in another order, and evaluations
/// on the test split, from `start` on. Batches are loaded in the background. `is_stopped`, if there
/// is one, is called after each step, and before each batch of an evaluation and after it; all
/// ranks get the same answer. When it returns true, the step is the last: on_checkpoint where there
/// is one, then Interrupted. Throws: Interrupted; um::Error when data cannot be read, the loss is
/// no longer a number, or a move failed.
void train(Session& session, const DatasetPair& data, const TrainOptions& options,
           const TrainEvents& events, const std::function<bool()>& is_stopped = {},
           const TrainingStart& start = {});

/// What a training came to.
struct TrainingSummary {
  std::uint64_t steps = 0;  ///< done, counted from the very beginning
  /// Of the steps run now; losses are 0 where there are none.
  std::uint64_t steps_run = 0;
  float first_loss = 0;
  float last_loss = 0;
  std::optional<double> last_accuracy;  ///< of the last step, where labels of it count
  um::Counters counters;                ///< their sum
  /// In which no kernel ran: the sum over those steps whose times were taken, and how many these
  /// are.
  um::Nanoseconds stalled{0};
  std::uint64_t timed_steps = 0;
  um::Nanoseconds data_wait{0};  ///< for batches to be loaded, the sum over the steps
  std::size_t broken_files = 0;  ///< of the data set, passed over
  /// The last one of those steps; nothing where there was none.
  std::optional<Evaluation> evaluation;

  um::Nanoseconds median_step{0};  ///< without the first, which warms up, where there are others
  /// Likewise: a tenth of the steps took no longer, or at least as long.
  um::Nanoseconds quick_step{0};
  um::Nanoseconds slow_step{0};
  /// By the plan; nothing where no plan depends on times, and so nothing was measured.
  std::optional<um::Nanoseconds> predicted_step;
  um::Bytes budget;
  um::Bytes near_peak;         ///< the most near memory in use at any time
  std::string weights_sha256;  ///< of all weights, in layer order
};

/// `last` as what a training reports.
[[nodiscard]] Evaluation evaluation_of(const LastEvaluation& last);

/// Adds up the steps of a training.
class SummaryOfSteps {
 public:
  explicit SummaryOfSteps(std::uint64_t steps_before) { summary_.steps = steps_before; }
  void add(std::uint64_t step, const StepReport& report);
  void add(const Evaluation& evaluation) { summary_.evaluation = evaluation; }
  [[nodiscard]] TrainingSummary summary() const;

 private:
  TrainingSummary summary_;
  std::vector<um::Nanoseconds> durations_;
};

}  // namespace spillway
