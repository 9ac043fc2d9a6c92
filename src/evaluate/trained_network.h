#pragma once

#include <filesystem>
#include <optional>

#include "nets/network.h"
#include "src/train/checkpoint_choice.h"
#include "src/train/state.h"

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

}  // namespace spillway
