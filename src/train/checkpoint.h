#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

#include "prefetch/plan.h"
#include "prefetch/task_graph.h"
#include "src/ops/optimizer.h"
#include "src/ops/precision.h"
#include "src/train/learning_rate.h"
#include "src/train/state.h"

namespace spillway {

/// What a training must have in common with the checkpoint it goes on from.
struct CheckpointKey {
  std::string network;  ///< name, image and classes: "resnet50 3x224x224, 10 classes"
  std::string layers;   ///< SHA-256 of nets::layers_text()
  std::string data;     ///< as the user gave it
  std::uint64_t batch = 0;
  std::uint64_t seed = 0;
};

/// What a training that goes on takes from its checkpoint, unless the user gives something else.
/// Its bits depend on all of it.
struct KeptSettings {
  LearningRateOptions learning_rate;
  OptimizerOptions optimizer;
  std::size_t threads = 1;  ///< of the kernels
  Precision precision = Precision::kFp32;
  bool deterministic = false;  ///< only kernels that give the same bits in each run
  /// Samples of a sub-batch; nothing where the batch is not cut. It cannot be given anew.
  std::optional<std::size_t> sub_batch;
};

/// A moment of a training, between two steps, but for the numbers of its State.
struct Checkpoint {
  CheckpointKey key;
  KeptSettings settings;
  std::uint64_t step = 0;  ///< steps done
};

/// A folder with the last checkpoint of a training: checkpoint.json, which names the safetensors
/// file of its step, and plan.json, so that a training that goes on uses the same algorithms and
/// ends with the same bits. Of a batch that is cut, plan.json is of the last sub-step, and
/// plan-1.json and so on of those before. Whenever the program is killed, each file is the old one
/// or the new.
class CheckpointFolder {
 public:
  /// Makes the folder. Throws: um::Error when it cannot be made or written.
  explicit CheckpointFolder(std::filesystem::path folder);

  /// Replaces the checkpoint. Throws: um::Error when it cannot be written.
  void save(const Checkpoint& checkpoint, const State& state) const;
  /// Replaces the plan of training step number `index` of `count` (Workload::training_steps()).
  /// Throws: um::Error when it cannot be written.
  void save_plan(std::size_t index, std::size_t count, const prefetch::Plan& plan,
                 const prefetch::TaskGraph& graph) const;

  /// Fills `state` from the checkpoint there is and returns the steps done. Throws: um::Error when
  /// there is none, it is damaged, or it does not belong to `key`; then `state` is as it was,
  /// unless the file of tensors cannot be read to its end.
  [[nodiscard]] std::uint64_t load(const CheckpointKey& key, State& state) const;
  /// Throws: um::Error when load(key) would for another reason than damaged tensors.
  void expect(const CheckpointKey& key) const;
  /// Throws: as expect_no_checkpoint().
  void expect_empty() const;

  /// Of that step.
  [[nodiscard]] std::string plan_path(std::size_t index, std::size_t count) const;

 private:
  std::filesystem::path folder_;
};

/// Throws: um::Error when there is no checkpoint in `folder`, which is left as it is.
void expect_checkpoint(const std::filesystem::path& folder);

/// Throws: um::Error when a training that begins would replace a checkpoint in `folder`.
void expect_no_checkpoint(const std::filesystem::path& folder);

/// The settings of the checkpoint in `folder`. Throws: um::Error when there is none or it is
/// damaged.
[[nodiscard]] KeptSettings read_settings(const std::filesystem::path& folder);

}  // namespace spillway
