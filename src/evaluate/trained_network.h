#pragma once

#include <filesystem>
#include <functional>
#include <optional>
#include <stop_token>

#include "nets/network.h"
#include "src/io/data/dataset.h"
#include "src/ops/backend.h"
#include "src/train/checkpoint_choice.h"
#include "src/train/evaluation.h"
#include "src/train/planned_steps.h"
#include "src/train/session.h"
#include "src/train/state.h"
#include "src/train/trainer_options.h"

namespace spillway {

/// A network as a checkpoint has it, but for its weights.
struct TrainedNetwork {
  nets::Network network;
  ChosenCheckpoint checkpoint;
  bool uses_weights = false;  ///< themselves, where the checkpoint has their averages, too
};

/// Reads the newest checkpoint in `folder` that verifies, or the one of the best evaluation.
/// Throws: um::Error when there is none, it is damaged, or it does not say of which network it is.
[[nodiscard]] TrainedNetwork open_trained_network(const std::filesystem::path& folder,
                                                  bool wants_best);

/// The weights in a checkpoint, or their moving averages where it has some, unless `uses_weights`,
/// and its running statistics. What is returned throws um::Error where a tensor is missing, has
/// another size or is not finite.
[[nodiscard]] TensorSource weights_of(const ChosenCheckpoint& checkpoint, bool uses_weights);
[[nodiscard]] inline TensorSource weights_of(const TrainedNetwork& trained) {
  return weights_of(trained.checkpoint, trained.uses_weights);
}

/// Fills `state`, of an evaluation, with the weights, or with their moving averages where the
/// checkpoint has some. Throws: um::Error as State::load() does.
void load_weights(const TrainedNetwork& trained, State& state);

/// A trained network within a memory budget, ready to judge data.
///
/// Thread safety: none; a stop may be requested from any thread.
class Evaluator {
 public:
  /// Of `options` the network and the seed come from `trained`; what is about training is not
  /// looked at. Measures and plans the evaluation step, and loads the weights. Throws: um::Error,
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
