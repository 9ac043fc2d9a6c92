#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "prefetch/plan.h"
#include "prefetch/task_graph.h"
#include "src/train/checkpoint/checkpoint.h"
#include "src/train/checkpoint/checkpoint_choice.h"
#include "src/train/checkpoint/state.h"
#include "um/files/folder.h"

namespace spillway {

/// A folder with the last checkpoints of a training, which nobody else may train in meanwhile. Of
/// the checkpoint of step 12: step-12.safetensors, the plan that it was trained with
/// (step-12-plan.json), and the manifest step-12.json with the digests of both. No two checkpoints
/// share a file, so that one damaged file costs one checkpoint. checkpoint.json is a copy of the
/// newest manifest. Whenever the program or the machine stops, the checkpoint that was saved last
/// is there, or the one that was being saved. Files that no manifest lists are not touched.
class CheckpointFolder {
 public:
  static constexpr std::size_t kUsualKeep = 2;

  /// Makes the folder, locks it, and removes what a killed program left unfinished there. `keep`,
  /// at least 1, is how many checkpoints stay. Throws: um::Error when it cannot be made or written,
  /// or when another training holds the lock, which is named.
  explicit CheckpointFolder(const std::filesystem::path& folder, std::size_t keep = kUsualKeep);

  /// Adds a checkpoint with the plans set before, and once that is on the disk removes the oldest
  /// ones; those that cannot be removed go later. Throws: um::Error when it cannot be written, or a
  /// number is not finite; the checkpoints before it stay then.
  void save(const Checkpoint& checkpoint, const State& state);
  /// The plan of the training step, which every checkpoint to come is saved with.
  void set_plan(const prefetch::Plan& plan, const prefetch::TaskGraph& graph);

  /// Beside the last ones, the checkpoint of this step stays.
  void set_best(std::uint64_t step) { best_ = step; }

  /// Chooses the newest checkpoint that verifies. Those passed over go when the next one is saved.
  /// Throws: um::Error as choose_checkpoint() and expect_same_training() do.
  [[nodiscard]] ChosenCheckpoint go_on(const CheckpointKey& key);
  /// Fills `state` from a chosen checkpoint. Throws: um::Error as State::load() does.
  void load(const ChosenCheckpoint& chosen, State& state) const;
  /// Leaves the folder as saving the chosen checkpoint would have, where a training that saved it
  /// was killed before, or kept more: for a training that will save no other. What cannot be
  /// written or removed stays.
  void settle(const ChosenCheckpoint& chosen);
  /// The files of a chosen checkpoint's plans: one, or where an earlier version wrote it one for
  /// each kind of part of a batch.
  [[nodiscard]] std::vector<std::string> plan_paths(const ChosenCheckpoint& chosen) const;
  /// Throws: as expect_no_checkpoint().
  void expect_empty() const;

 private:
  void remove_unfinished() const;
  void find_kept();
  void replace(const std::string& name, const std::string& text) const;
  void restore(const std::string& name, const ChosenCheckpoint& chosen) const;
  [[nodiscard]] std::vector<StoredFile> write_plan(std::uint64_t step) const;
  void rotate();
  void remove_outlived();
  void remove(const CheckpointManifest& old, const std::set<std::string>& stays) const;

  um::Folder folder_;
  um::FolderLock lock_;
  std::size_t keep_;
  std::optional<std::uint64_t> best_;
  std::vector<CheckpointManifest> kept_;      // the newest first
  std::vector<CheckpointManifest> outlived_;  // to be removed when the next one is saved
  std::string plan_;                          // its text; empty: none is known
};

}  // namespace spillway
