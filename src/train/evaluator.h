#pragma once

#include <filesystem>
#include <optional>
#include <stop_token>

#include "nets/network.h"
#include "src/io/data/dataset.h"
#include "src/ops/backend.h"
#include "src/train/checkpoint/checkpoint_choice.h"
#include "src/train/checkpoint/state.h"
#include "src/train/evaluation.h"
#include "src/train/planned_steps.h"
#include "src/train/session.h"
#include "src/train/trainer_options.h"

namespace spillway {

/// A network read from a checkpoint, without its weights.
struct TrainedNetwork {
  nets::Network network;
  ChosenCheckpoint checkpoint;
  bool uses_weights = false;  ///< true: the weights even if the checkpoint has moving averages
};

/// Returns the newest checkpoint in `folder` that verifies, or the one with the best evaluation.
/// Throws: um::Error if there is none, or it is damaged.
[[nodiscard]] ChosenCheckpoint find_trained(const std::filesystem::path& folder, bool wants_best);

/// Reads the network of find_trained(). Throws: um::Error if there is none, it is damaged, or it
/// does not name its network.
[[nodiscard]] TrainedNetwork open_trained_network(const std::filesystem::path& folder,
                                                  bool wants_best);

/// Returns a source of the weights in a checkpoint and its running statistics. Moving averages
/// replace the weights if there are any, unless `uses_weights`. The source throws um::Error if a
/// tensor is missing, has another size or is not finite.
[[nodiscard]] TensorSource weights_of(const ChosenCheckpoint& checkpoint, bool uses_weights);
[[nodiscard]] inline TensorSource weights_of(const TrainedNetwork& trained) {
  return weights_of(trained.checkpoint, trained.uses_weights);
}

/// Fills the evaluation's `state` as weights_of() says. Throws: um::Error as State::load() does.
void load_weights(const TrainedNetwork& trained, State& state);

/// Evaluates a trained network within a memory budget.
///
/// Thread safety: none; a stop may be requested from any thread.
class Evaluator {
 public:
  /// Measures and plans the evaluation step, and loads the weights. The network and the seed of
  /// `options` are replaced by those of `trained`; training options are ignored. Throws: um::Error,
  /// one sentence for the user; Interrupted.
  Evaluator(ExecutionContext context, TrainedNetwork trained, TrainerOptions options,
            TrainerEvents events = {}, std::stop_token stop = {});

  /// Requires: `data` can be loaded as StepOptions::has_byte_images says. Throws: Interrupted.
  [[nodiscard]] Evaluation evaluate(const Dataset& data, const EvaluateOptions& options);

  [[nodiscard]] const TrainedNetwork& trained() const { return trained_; }
  [[nodiscard]] const ExecutionContext& context() const { return context_; }
  [[nodiscard]] const Plans& plans() const { return steps_->plans(); }
  [[nodiscard]] const PlannedSteps& steps() const { return *steps_; }
  [[nodiscard]] const Session& session() const { return *session_; }

 private:
  ExecutionContext context_;
  TrainedNetwork trained_;
  TrainerOptions options_;
  std::stop_token stop_;
  std::optional<PlannedSteps> steps_;
  std::optional<Session> session_;
};

}  // namespace spillway
