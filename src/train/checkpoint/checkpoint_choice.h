#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "src/io/safetensors.h"
#include "src/train/checkpoint/checkpoint.h"
#include "um/error.h"

namespace spillway {

/// The checkpoint that a training goes on from.
struct ChosenCheckpoint {
  CheckpointManifest manifest;
  std::filesystem::path path;            ///< of the manifest
  std::vector<std::string> passed_over;  ///< why newer ones were not chosen, a sentence each
  /// Its tensors, which stay readable when a training removes the file. Shared: it is copied.
  std::shared_ptr<const SafetensorsReader> tensors = nullptr;
};

/// Whether a training may go on in a folder while somebody reads there, and remove checkpoints.
enum class Meanwhile : std::uint8_t { kMayChange, kIsLocked };

/// The newest checkpoint in `folder` that verifies (open_verified()). Looks again where a training
/// has meanwhile removed what was listed. Throws: um::Error when there is none, and says what is
/// wrong with the newest; ForeignCheckpoint when that is another's; um::SystemError when one that
/// may be whole cannot be read now.
[[nodiscard]] ChosenCheckpoint choose_checkpoint(const std::filesystem::path& folder,
                                                 Meanwhile meanwhile = Meanwhile::kMayChange);

/// The checkpoint in `folder` of the best evaluation, where it verifies. Throws: as
/// choose_checkpoint() does; um::Error when there was no evaluation, or its checkpoint was not
/// kept.
[[nodiscard]] ChosenCheckpoint choose_best_checkpoint(const std::filesystem::path& folder);

/// Throws: um::Error that says in what the checkpoint's training differs from that of `key`.
void expect_same_training(const ChosenCheckpoint& chosen, const CheckpointKey& key);

/// Whether there is a checkpoint in `folder`, whole or damaged: a training of before was there. The
/// folder may be missing. Throws: um::Error when it cannot be looked at.
[[nodiscard]] bool holds_checkpoint(const std::filesystem::path& folder);

/// Throws: um::Error when there is no checkpoint in `folder`, which is left as it is.
void expect_checkpoint(const std::filesystem::path& folder);

/// Throws: um::Error when a training that begins would replace a checkpoint in `folder`.
void expect_no_checkpoint(const std::filesystem::path& folder);

/// The settings of the checkpoint to be chosen in `folder`. Throws: as choose_checkpoint() does.
[[nodiscard]] KeptSettings read_settings(const std::filesystem::path& folder);

/// The newest manifest of a folder, a copy of that of its checkpoint.
inline constexpr const char* kNewestManifest = "checkpoint.json";

/// The manifests in `folder`: checkpoint.json, where there is one, then those of each checkpoint,
/// the latest step first. Throws: um::Error when the folder cannot be read.
[[nodiscard]] std::vector<std::filesystem::path> find_manifests(
    const std::filesystem::path& folder);

/// Reads all files of a checkpoint in `folder` and compares them with what was written. Returns the
/// open file of its tensors, which stays readable when a training removes it meanwhile. Throws:
/// um::Error that names the file, and the tensor where it is one, that is missing, differs from its
/// digest, or holds a number that is not finite.
[[nodiscard]] SafetensorsReader open_verified(const std::filesystem::path& folder,
                                              const CheckpointManifest& manifest);

/// Whether `error` is about a file that is not there.
[[nodiscard]] bool is_missing_file(const um::Error& error);

/// A manifest, and whether a training that goes on in its folder replaces or removes it meanwhile:
/// then the files that it lists may be gone, and that is no damage.
class WatchedManifest {
 public:
  explicit WatchedManifest(std::filesystem::path path) : path_{std::move(path)}, text_{text()} {}
  /// Now or in a moment: a training removes a manifest right after the files that it lists. False
  /// of a name that stays and cannot be read, such as a link to nowhere.
  [[nodiscard]] bool is_replaced() const;

 private:
  [[nodiscard]] bool is_changed() const;
  [[nodiscard]] std::optional<std::string> text() const;

  std::filesystem::path path_;
  std::optional<std::string> text_;  // nothing: it is not there, or cannot be read
};
/// The most times that a reader looks again beside a training that removes what it reads.
inline constexpr int kMostLooks = 50;

/// What verifying one checkpoint gave.
struct CheckpointFinding {
  std::string manifest;               ///< its file, by name
  std::optional<std::uint64_t> step;  ///< nothing where the manifest cannot be read
  std::size_t tensors = 0;
  std::uint64_t bytes = 0;             ///< of all its files but the manifest
  std::optional<std::string> problem;  ///< nothing where it verifies
};

/// Verifies every checkpoint in `folder` and changes nothing. A training may go on there meanwhile:
/// a checkpoint that it removes is left out. Throws: um::Error when the folder cannot be read or
/// holds no checkpoint.
[[nodiscard]] std::vector<CheckpointFinding> verify_checkpoints(
    const std::filesystem::path& folder);

}  // namespace spillway
