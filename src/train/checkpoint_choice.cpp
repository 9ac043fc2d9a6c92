#include "src/train/checkpoint_choice.h"

#include <algorithm>
#include <cerrno>
#include <memory>
#include <optional>
#include <set>
#include <system_error>
#include <utility>

#include "src/train/checkpoint_check.h"
#include "um/error.h"

namespace spillway {
namespace {

namespace fs = std::filesystem;

um::Error another_training(const ChosenCheckpoint& chosen, const std::string& what,
                           const std::string& is, const std::string& wanted) {
  return um::Error{chosen.path.string() + ": " + what + " is " + is + ", but this training's is " +
                   wanted + "; give the same flags, or another --checkpoint folder"};
}

std::string quoted(const std::string& text) { return "'" + text + "'"; }

// Whether the file is gone or its disk is broken. Anything else may be over soon (too many open
// files, no memory) or be mended (a mode): the checkpoint is not to be given up for it.
bool is_damage(const um::SystemError& error) {
  return error.code() == ENOENT || error.code() == EIO;
}

// The manifests in `folder`, the latest step first. checkpoint.json, where it can be read, comes
// just before that of its own step: of a program that was killed it may be an older one.
std::vector<fs::path> latest_first(const fs::path& folder) {
  std::vector<fs::path> paths = find_manifests(folder);
  if (paths.empty() || paths.front().filename() != kNewestManifest) return paths;
  try {
    const std::uint64_t step = read_manifest(paths.front()).checkpoint.step;
    const auto place = std::find_if(paths.begin() + 1, paths.end(), [&](const fs::path& path) {
      return step_of_manifest(path.filename()) <= step;
    });
    std::rotate(paths.begin(), paths.begin() + 1, place);
  } catch (const um::Error&) {
    // It is tried first, which says what is wrong with it.
  }
  return paths;
}

// One look at what is in a folder.
struct Look {
  std::optional<ChosenCheckpoint> found;
  std::vector<std::string> passed_over;  // where nothing is found
  bool is_outdated = false;              // a training has removed what was listed
};

ChosenCheckpoint open_checkpoint(const fs::path& path, CheckpointManifest manifest) {
  auto tensors =
      std::make_shared<const SafetensorsReader>(open_verified(path.parent_path(), manifest));
  return {.manifest = std::move(manifest), .path = path, .tensors = std::move(tensors)};
}

Look look_for_checkpoint(const fs::path& folder, Meanwhile meanwhile) {
  Look look;
  std::set<std::string> tried;
  for (const fs::path& path : latest_first(folder)) {
    const WatchedManifest watched{path};
    try {
      CheckpointManifest manifest = read_manifest(path);
      if (!tried.insert(to_text(manifest)).second) continue;  // checkpoint.json is a copy
      look.found = open_checkpoint(path, std::move(manifest));
      look.found->passed_over = std::move(look.passed_over);
      return look;
    } catch (const ForeignCheckpoint&) {
      throw;
    } catch (const um::SystemError& error) {
      if (!is_damage(error)) throw;
      look.passed_over.emplace_back(error.what());
      look.is_outdated =
          meanwhile == Meanwhile::kMayChange && is_missing_file(error) && watched.is_replaced();
    } catch (const um::Error& error) {
      look.passed_over.emplace_back(error.what());
    }
    if (look.is_outdated) return look;
  }
  return look;
}

// That of `step`; nothing where it is not there, or a training has removed it meanwhile.
std::optional<ChosenCheckpoint> find_checkpoint(const fs::path& folder, std::uint64_t step) {
  const fs::path path = folder / manifest_file(step);
  const WatchedManifest watched{path};
  try {
    return open_checkpoint(path, read_manifest(path));
  } catch (const um::Error& error) {
    if (is_missing_file(error) && watched.is_replaced()) return std::nullopt;
    throw;
  }
}

}  // namespace

ChosenCheckpoint choose_checkpoint(const fs::path& folder, Meanwhile meanwhile) {
  expect_checkpoint(folder);
  Look look;
  for (int looks = kMostLooks; looks >= 0; --looks) {
    look = look_for_checkpoint(folder, looks == 0 ? Meanwhile::kIsLocked : meanwhile);
    if (!look.is_outdated) break;
  }
  if (look.found) return std::move(*look.found);
  if (look.passed_over.empty()) {
    throw um::Error{"the checkpoints in " + folder.string() + " have just been removed"};
  }
  throw um::Error{look.passed_over.front() + "; no other checkpoint in " + folder.string() +
                  " verifies: begin anew in another --checkpoint folder"};
}

ChosenCheckpoint choose_best_checkpoint(const fs::path& folder) {
  std::optional<std::uint64_t> missing;
  for (int looks = kMostLooks;; --looks) {
    ChosenCheckpoint newest = choose_checkpoint(folder);
    const std::optional<BestEvaluation>& best = newest.manifest.checkpoint.best;
    if (!best) {
      throw um::Error{"the training in " + folder.string() +
                      " was never evaluated, so that no checkpoint is the best; leave out --best"};
    }
    if (auto found = find_checkpoint(folder, best->step)) {
      found->passed_over = std::move(newest.passed_over);
      return std::move(*found);
    }
    if (missing == best->step || looks == 0) {  // no better one has replaced it meanwhile
      throw um::Error{"the best checkpoint in " + folder.string() + ", of step " +
                      std::to_string(best->step) +
                      ", was not kept; train with --keep-best, or leave out --best"};
    }
    missing = best->step;
  }
}

void expect_same_training(const ChosenCheckpoint& chosen, const CheckpointKey& key) {
  const CheckpointKey& found = chosen.manifest.checkpoint.key;
  if (found.network != key.network) {
    throw another_training(chosen, "network", quoted(found.network), quoted(key.network));
  }
  if (found.layers != key.layers) {
    throw um::Error{chosen.path.string() + ": layers_sha256 is not that of network '" +
                    key.network +
                    "' as it is now: its layers have been changed since, or another --dropout was "
                    "given; train it as it was, or give another --checkpoint folder"};
  }
  if (found.batch != key.batch) {
    throw another_training(chosen, "batch", std::to_string(found.batch), std::to_string(key.batch));
  }
  if (found.seed != key.seed) {
    throw another_training(chosen, "seed", std::to_string(found.seed), std::to_string(key.seed));
  }
  if (found.data_sha256 == key.data_sha256) return;
  throw um::Error{chosen.path.string() + ": data is '" + found.data +
                  "', whose images and labels differ from those of '" + key.data +
                  "' as they are now; give the same data, or another --checkpoint folder"};
}

bool holds_checkpoint(const fs::path& folder) {
  const fs::path path = folder / kNewestManifest;
  std::error_code error;
  if (fs::exists(path, error)) return true;
  if (error) throw um::system_error("cannot look for " + path.string(), error.value());
  return fs::is_directory(folder, error) && !find_manifests(folder).empty();
}

void expect_checkpoint(const fs::path& folder) {
  if (holds_checkpoint(folder)) return;
  throw um::Error{"there is no checkpoint in " + folder.string() +
                  "; train without --resume first"};
}

void expect_no_checkpoint(const fs::path& folder) {
  if (!holds_checkpoint(folder)) return;
  throw um::Error{"there is a checkpoint in " + folder.string() +
                  "; give --resume to go on from it, or another folder"};
}

KeptSettings read_settings(const fs::path& folder) {
  return choose_checkpoint(folder).manifest.checkpoint.settings;
}

}  // namespace spillway
