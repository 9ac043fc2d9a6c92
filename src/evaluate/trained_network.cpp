#include "src/evaluate/trained_network.h"

#include <optional>
#include <span>
#include <sstream>
#include <string>
#include <system_error>
#include <utility>

#include "nets/families/network_catalogue.h"
#include "nets/text/network_file.h"
#include "src/files/file_digest.h"
#include "src/files/finite.h"
#include "src/files/safetensors.h"
#include "src/train/checkpoint_check.h"
#include "um/error.h"

namespace spillway {
namespace {

namespace fs = std::filesystem;

ChosenCheckpoint best_checkpoint(const fs::path& folder, const ChosenCheckpoint& newest) {
  const std::optional<BestEvaluation>& best = newest.manifest.checkpoint.best;
  if (!best) {
    throw um::Error{"the training in " + folder.string() +
                    " was never evaluated, so that no checkpoint is the best; leave out --best"};
  }
  const fs::path path = folder / manifest_file(best->step);
  std::error_code error;
  if (!fs::exists(path, error)) {
    throw um::Error{"the best checkpoint in " + folder.string() + ", of step " +
                    std::to_string(best->step) +
                    ", was not kept; train with --keep-best, or leave out --best"};
  }
  CheckpointManifest manifest = read_manifest(path);
  expect_verified(folder, manifest);
  return {.manifest = std::move(manifest), .path = path, .passed_over = {}};
}

ChosenCheckpoint find_trained(const fs::path& folder, bool wants_best) {
  std::error_code ignored;
  if (!fs::is_directory(folder, ignored) || find_manifests(folder).empty()) {
    throw um::Error{"there is no checkpoint in " + folder.string() +
                    "; give the folder of a train --checkpoint"};
  }
  ChosenCheckpoint newest = choose_checkpoint(folder);
  return wants_best ? best_checkpoint(folder, newest) : newest;
}

const std::string& network_text(const fs::path& folder, const Checkpoint& checkpoint) {
  if (checkpoint.text_model) return checkpoint.text_model->network;
  if (!checkpoint.network_file.empty()) return checkpoint.network_file;
  throw um::Error{"the checkpoint in " + folder.string() +
                  " was saved by a spillway that did not write the network into it; train it one "
                  "step more with train --resume"};
}

// "conv1.average.weight" of "conv1.weight".
std::string average_of(const std::string& array) {
  const std::size_t dot = array.rfind('.');
  return array.substr(0, dot) + ".average" + array.substr(dot);
}

}  // namespace

TrainedNetwork open_trained_network(const fs::path& folder, bool wants_best) {
  ChosenCheckpoint chosen = find_trained(folder, wants_best);
  std::istringstream text{network_text(folder, chosen.manifest.checkpoint)};
  nets::Network network = nets::build_network(nets::read_network(text, chosen.path.string()));
  return {.network = std::move(network), .checkpoint = std::move(chosen)};
}

// The files have been verified by their digests.
void load_weights(const TrainedNetwork& trained, State& state) {
  const CheckpointManifest& manifest = trained.checkpoint.manifest;
  const fs::path path = trained.checkpoint.path.parent_path() / manifest.tensors.name;
  const SafetensorsReader file{path};
  state.start_from([&](const std::string& name, std::span<float> tensor) {
    std::optional<std::size_t> found = file.find(average_of(name));
    if (!found) found = file.find(name);
    if (!found) throw um::Error{path.string() + " has no tensor '" + name + "'"};
    file.read(*found, tensor);
    if (!is_finite(tensor)) {
      throw um::Error{"tensor '" + name + "' of " + path.string() + " " + kNotFinite};
    }
  });
}

}  // namespace spillway
