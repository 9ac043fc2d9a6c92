#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "src/safetensors.h"

namespace spillway {

/// What a training must have in common with the checkpoint it goes on from.
struct CheckpointKey {
  std::string network;  ///< name, image and classes: "resnet50 3x224x224, 10 classes"
  std::string data;     ///< as the user gave it
  std::uint64_t batch = 0;
  std::uint64_t seed = 0;
};

/// A moment of a training, between two steps.
struct Checkpoint {
  CheckpointKey key;
  std::uint64_t step = 0;  ///< steps done
  float learning_rate = 0;
  std::vector<NamedTensor> tensors;
};

/// A folder with the last checkpoint of a training: checkpoint.json, which names the safetensors
/// file of its step, and plan.json, so that a training that goes on uses the same algorithms and
/// ends with the same bits.
class CheckpointFolder {
 public:
  /// Makes the folder. Throws: um::Error when it cannot be made or written.
  explicit CheckpointFolder(std::filesystem::path folder);

  /// Replaces the checkpoint; whenever the program is killed, the folder holds the old or the new.
  /// Throws: um::Error when it cannot be written.
  void save(const Checkpoint& checkpoint) const;

  /// The checkpoint there is. Throws: um::Error when there is none, it is damaged, or it does not
  /// belong to `key`.
  [[nodiscard]] Checkpoint load(const CheckpointKey& key) const;
  /// Throws: um::Error when load(key) would for another reason than damaged tensors.
  void expect(const CheckpointKey& key) const;

  [[nodiscard]] std::string plan_path() const { return folder_ / "plan.json"; }
  [[nodiscard]] bool has_checkpoint() const;

 private:
  std::filesystem::path folder_;
};

/// Throws: um::Error when there is no checkpoint in `folder`, which is left as it is.
void expect_checkpoint(const std::filesystem::path& folder);

}  // namespace spillway
