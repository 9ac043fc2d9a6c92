#include "src/evaluate/evaluator.h"

#include <utility>

namespace spillway {

Evaluator::Evaluator(ExecutionContext context, TrainedNetwork trained, TrainerOptions options,
                     TrainerEvents events, std::stop_token stop)
    : context_{std::move(context)},
      trained_{std::move(trained)},
      options_{std::move(options)},
      stop_{std::move(stop)} {
  options_.network = trained_.network;
  options_.training.seed = trained_.checkpoint.manifest.checkpoint.key.seed;
  options_.only_evaluates = true;
  steps_.emplace(options_, context_, std::move(events), stop_);
  steps_->plan({});
  session_.emplace(context_, steps_->workload(), steps_->plans(), options_.memory.mode,
                   options_.memory.space, stop_);
  load_weights(trained_, session_->state());
}

Evaluation Evaluator::evaluate(const Dataset& data, const EvaluateOptions& options) {
  return spillway::evaluate(*session_, data, options);
}

}  // namespace spillway
