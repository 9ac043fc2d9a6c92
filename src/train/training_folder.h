#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "src/io/data/dataset.h"
#include "src/plan/plans.h"
#include "src/plan/workload.h"
#include "src/train/checkpoint/checkpoint.h"
#include "src/train/checkpoint/checkpoint_choice.h"
#include "src/train/checkpoint/checkpoint_folder.h"
#include "src/train/checkpoint/state.h"
#include "src/train/trainer_options.h"
#include "um/error.h"

namespace spillway {

/// What is known of a training that has ended.
struct EndedTraining {
  std::uint64_t steps = 0;
  std::string weights_sha256;                     ///< as TrainingSummary has it
  std::optional<LastEvaluation> evaluation = {};  ///< of the last step, where there was one
};

/// A training that was to go on has no steps left: all of them are in its checkpoint, which
/// verifies.
class NothingLeft final : public um::Error {
 public:
  NothingLeft(const std::string& sentence, EndedTraining training)
      : um::Error{sentence}, training_{std::move(training)} {}
  [[nodiscard]] const EndedTraining& training() const { return training_; }

 private:
  EndedTraining training_;
};

/// The folder of one training's checkpoints, with what they all tell of the training, and the one
/// that it goes on from.
class TrainingFolder {
 public:
  /// Opens the folder that `options` name. With CheckpointOptions::resume it chooses the checkpoint
  /// to go on from, which must be there; without, none may be there. Throws: um::Error, one
  /// sentence for the user, before a folder is made when there is nothing to resume.
  TrainingFolder(const TrainerOptions& options, const DatasetPair& data);

  /// Returns the checkpoint that the training goes on from; null where it begins. load() and
  /// nothing_left() require one, and without one plan_paths() is empty.
  [[nodiscard]] const ChosenCheckpoint* chosen() const { return chosen_ ? &*chosen_ : nullptr; }
  /// Fills `state` from it. Throws: um::Error as State::load() does.
  void load(State& state) const { folder_->load(*chosen_, state); }
  /// Why it cannot go on: with `advice`, how it could. Removes the checkpoints that the training
  /// would have removed. Throws: um::Error where the checkpoint's weights, those of `workload`,
  /// cannot be read.
  [[nodiscard]] NothingLeft nothing_left(const Workload& workload, const std::string& advice);
  /// The files of its plans, of each training step in order.
  [[nodiscard]] std::vector<std::string> plan_paths() const;

  /// The plans that checkpoints to come are saved with.
  void set_plans(const Workload& workload, const Plans& plans);
  /// Beside the last checkpoints, that of this step stays.
  void set_best(std::uint64_t step) { folder_->set_best(step); }
  /// Saves `moment`, to which it adds what all checkpoints of the training have in common. Throws:
  /// as CheckpointFolder::save() does.
  void save(Checkpoint moment, const State& state);

 private:
  std::filesystem::path path_;
  bool only_looks_;
  std::optional<CheckpointFolder> folder_;
  CheckpointKey key_;
  std::string network_file_;                 // empty: the network reads text
  std::optional<KeptTextModel> text_model_;  // where it does
  std::vector<std::string> class_names_;
  std::optional<ChosenCheckpoint> chosen_;
};

}  // namespace spillway
