#pragma once

#include <filesystem>
#include <functional>
#include <optional>
#include <stop_token>

#include "src/evaluate/trained_network.h"
#include "src/io/data/dataset.h"
#include "src/ops/backend.h"
#include "src/train/evaluation.h"
#include "src/train/planned_steps.h"
#include "src/train/session.h"
#include "src/train/trainer_options.h"

namespace spillway {

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
