#include "src/train/training_folder.h"

#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include "nets/network.h"
#include "nets/text/network_file.h"
#include "src/io/file_digest.h"
#include "src/io/text/byte_pairs.h"
#include "src/train/checkpoint/checkpoint.h"
#include "src/train/checkpoint/state.h"

namespace spillway {
namespace {

// A data set as the user named it, and what it is known by.
struct IdentifiedData {
  std::string name;
  std::string sha256;  // content_sha256()
};

CheckpointKey make_key(const nets::Network& network, IdentifiedData data, std::uint64_t batch,
                       std::uint64_t seed) {
  return {.network = network.name + ' ' + nets::to_string(network.input()) + ", " +
                     std::to_string(network.classes()) + " classes",
          .layers = sha256_of(nets::layers_text(network)),
          .data = std::move(data.name),
          .data_sha256 = std::move(data.sha256),
          .batch = batch,
          .seed = seed};
}

// Returns what checkpoints of a `network` that reads text keep: the tokens of the folder
// `tokenizer`, or none if that is empty. Throws: um::Error when the tokenizer cannot be read.
std::optional<KeptTextModel> text_model_of(const nets::Network& network,
                                           const std::string& tokenizer) {
  if (!network.reads_text()) return std::nullopt;
  return KeptTextModel{
      .network = nets::to_text(network),
      .byte_pairs = tokenizer.empty() ? std::string{} : read_byte_pairs(tokenizer).sha256};
}

}  // namespace

TrainingFolder::TrainingFolder(const TrainerOptions& options, const DatasetPair& data)
    : path_{options.checkpoint.folder},
      only_looks_{options.checkpoint.only_looks},
      class_names_{data.class_names} {
  const CheckpointOptions& checkpoint = options.checkpoint;
  if (checkpoint.resume) expect_checkpoint(path_);
  folder_.emplace(path_, checkpoint.keep);
  key_ = make_key(options.network, {.name = options.data, .sha256 = content_sha256(data)},
                  options.step.batch, options.training.seed);
  text_model_ = text_model_of(options.network, options.tokenizer);
  if (!text_model_) network_file_ = nets::to_text(options.network);
  if (checkpoint.resume) {
    chosen_ = folder_->go_on(key_);
  } else {
    folder_->expect_empty();  // another training may have been faster
  }
}

NothingLeft TrainingFolder::nothing_left(const Workload& workload, const std::string& advice) {
  const CheckpointManifest& manifest = chosen_->manifest;
  const std::uint64_t step = manifest.checkpoint.step;
  std::optional<LastEvaluation> evaluation = manifest.checkpoint.last;
  if (evaluation && evaluation->step != step) evaluation.reset();
  if (!only_looks_) folder_->settle(*chosen_);
  return {"nothing is left to train: the checkpoint in " + path_.string() + " is of step " +
              std::to_string(step) + "; " + advice,
          {.steps = step,
           .weights_sha256 = weights_sha256(path_ / manifest.tensors.name, workload.training()),
           .evaluation = evaluation}};
}

std::vector<std::string> TrainingFolder::plan_paths() const {
  return chosen_ ? folder_->plan_paths(*chosen_) : std::vector<std::string>{};
}

void TrainingFolder::set_plans(const Workload& workload, const Plans& plans) {
  folder_->set_plan(plans.training, workload.training().graph);
}

void TrainingFolder::save(Checkpoint moment, const State& state) {
  moment.key = key_;
  moment.network_file = network_file_;
  moment.text_model = text_model_;
  moment.class_names = class_names_;
  folder_->save(moment, state);
}

}  // namespace spillway
