#include "src/train/evaluator.h"

#include <optional>
#include <span>
#include <sstream>
#include <string>
#include <utility>

#include "nets/families/network_catalogue.h"
#include "nets/text/network_file.h"
#include "src/io/safetensors.h"
#include "src/io/weights/tensor_places.h"
#include "src/train/checkpoint/checkpoint_choice.h"
#include "um/error.h"

namespace spillway {
namespace {

namespace fs = std::filesystem;

const std::string& network_text(const fs::path& folder, const Checkpoint& checkpoint) {
  if (checkpoint.text_model) return checkpoint.text_model->network;
  if (!checkpoint.network_file.empty()) return checkpoint.network_file;
  throw um::Error{"the checkpoint in " + folder.string() +
                  " was saved by a spillway that did not write the network into it; train it one "
                  "step more with train --resume"};
}

}  // namespace

ChosenCheckpoint find_trained(const fs::path& folder, bool wants_best) {
  return wants_best ? choose_best_checkpoint(folder) : choose_checkpoint(folder);
}

TrainedNetwork open_trained_network(const fs::path& folder, bool wants_best) {
  ChosenCheckpoint chosen = find_trained(folder, wants_best);
  std::istringstream text{network_text(folder, chosen.manifest.checkpoint)};
  nets::Network network = nets::build_network(nets::read_network(text, chosen.path.string()));
  return {.network = std::move(network), .checkpoint = std::move(chosen)};
}

// The file's digest has been verified before.
TensorSource weights_of(const ChosenCheckpoint& checkpoint, bool uses_weights) {
  return
      [uses_weights, file = checkpoint.tensors](const std::string& name, std::span<float> tensor) {
        std::optional<std::size_t> found;
        if (!uses_weights) found = file->find(average_of(name));
        if (!found) found = file->find(name);
        if (!found) throw um::Error{file->path().string() + " has no tensor '" + name + "'"};
        file->read(*found, tensor);
        if (!is_finite(tensor)) {
          throw um::Error{"tensor '" + name + "' of " + file->path().string() + " " + kNotFinite};
        }
      };
}

void load_weights(const TrainedNetwork& trained, State& state) {
  state.start_from(weights_of(trained));
}

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
  session_.emplace(context_, steps_->workload(), steps_->plans(), steps_->memory(), steps_->space(),
                   stop_);
  load_weights(trained_, session_->state());
}

Evaluation Evaluator::evaluate(const Dataset& data, const EvaluateOptions& options) {
  return spillway::evaluate(*session_, data, options);
}

}  // namespace spillway
