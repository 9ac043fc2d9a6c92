#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "src/files/safetensors.h"
#include "src/train/checkpoint_manifest.h"

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

}  // namespace spillway
