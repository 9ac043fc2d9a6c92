#include "src/train/checkpoint/checkpoint_choice.h"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <functional>
#include <memory>
#include <numeric>
#include <optional>
#include <set>
#include <span>
#include <system_error>
#include <thread>
#include <utility>

#include "prefetch/files/json.h"
#include "src/io/file_digest.h"
#include "um/error.h"
#include "um/files/folder.h"
#include "um/text/wording.h"

namespace spillway {
namespace {

namespace fs = std::filesystem;

um::InputFile open_whole(const fs::path& folder, const StoredFile& stored) {
  um::InputFile file{folder / stored.name};
  if (file.size() == stored.bytes) return file;
  throw um::Error{file.path().string() + " has " + um::count_of(file.size(), "byte") +
                  ", not the " + std::to_string(stored.bytes) + " that were written"};
}

std::vector<float> values_of(const SafetensorsReader& file, std::size_t index) {
  const std::vector<std::size_t>& shape = file.tensors()[index].shape;
  std::vector<float> values(
      std::accumulate(shape.begin(), shape.end(), std::size_t{1}, std::multiplies{}));
  file.read(index, values);
  return values;
}

// The tensor of a file that is not what was written; nothing where that cannot be told.
std::optional<std::string> damaged_tensor(const SafetensorsReader& file,
                                          const CheckpointManifest& manifest) {
  for (std::size_t i = 0; i < file.tensors().size(); ++i) {
    const std::string& name = file.tensors()[i].name;
    const std::vector<float> values = values_of(file, i);
    const auto wanted = manifest.tensor_digests.find(name);
    if (wanted == manifest.tensor_digests.end() ||
        wanted->second != sha256_of(std::as_bytes(std::span{values}))) {
      return name;
    }
  }
  return std::nullopt;
}

um::Error damaged(const fs::path& path, const CheckpointManifest& manifest) {
  const std::string sentence = path.string() + " does not match its digest: ";
  try {
    if (const auto tensor = damaged_tensor(SafetensorsReader{path}, manifest)) {
      return um::Error{sentence + "tensor '" + *tensor + "' is damaged"};
    }
  } catch (const um::Error&) {
    // The header is none.
  }
  return um::Error{sentence + "its header is damaged"};
}

SafetensorsReader open_tensors(const fs::path& folder, const CheckpointManifest& manifest) {
  um::InputFile whole = open_whole(folder, manifest.tensors);
  const fs::path path = whole.path();
  if (sha256_of(whole) != manifest.tensors.sha256) throw damaged(path, manifest);
  SafetensorsReader file{std::move(whole)};
  for (std::size_t i = 0; i < file.tensors().size(); ++i) {
    const std::string& name = file.tensors()[i].name;
    if (!manifest.tensor_digests.contains(name)) {
      throw um::Error{path.string() + " has a tensor '" + name + "' without a digest"};
    }
    if (!is_finite(values_of(file, i))) {
      throw um::Error{"tensor '" + name + "' of " + path.string() + " " + kNotFinite};
    }
  }
  return file;
}

// Verifies the checkpoint of a manifest, and notes what it is like.
void verify(const fs::path& path, CheckpointFinding& finding) {
  const CheckpointManifest manifest = read_manifest(path);
  finding.step = manifest.checkpoint.step;
  finding.tensors = manifest.tensor_digests.size();
  finding.bytes = manifest.tensors.bytes;
  for (const StoredFile& plan : manifest.plans) finding.bytes += plan.bytes;
  static_cast<void>(open_verified(path.parent_path(), manifest));
}

// Nothing where a training has removed the checkpoint meanwhile.
std::optional<CheckpointFinding> finding_of(const fs::path& path) {
  for (int looks = kMostLooks;; --looks) {
    CheckpointFinding finding{.manifest = path.filename()};
    const WatchedManifest watched{path};
    try {
      verify(path, finding);
      return finding;
    } catch (const um::Error& error) {
      finding.problem = error.what();
      if (!is_missing_file(error) || looks == 0 || !watched.is_replaced()) return finding;
    }
    if (path.filename() != kNewestManifest) return std::nullopt;
  }
}

um::Error another_training(const ChosenCheckpoint& chosen, const std::string& what,
                           const std::string& is, const std::string& wanted) {
  return um::Error{chosen.path.string() + ": " + what + " is " + is + ", but this training's is " +
                   wanted + "; give the same flags, or another --checkpoint folder"};
}

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

std::vector<fs::path> find_manifests(const fs::path& folder) {
  std::vector<fs::path> found;
  std::vector<std::uint64_t> steps;
  for (const std::string& name : um::Folder{folder}.names()) {
    if (name == kNewestManifest) found.push_back(folder / name);
    if (const auto step = step_of_manifest(name)) steps.push_back(*step);
  }
  std::ranges::sort(steps, std::greater{});
  for (const std::uint64_t step : steps) found.push_back(folder / manifest_file(step));
  return found;
}

SafetensorsReader open_verified(const fs::path& folder, const CheckpointManifest& manifest) {
  SafetensorsReader tensors = open_tensors(folder, manifest);
  for (const StoredFile& plan : manifest.plans) {
    const um::InputFile file = open_whole(folder, plan);
    if (sha256_of(file) != plan.sha256) {
      throw um::Error{file.path().string() +
                      " does not match its digest: it is damaged, or was "
                      "changed by hand"};
    }
  }
  return tensors;
}

bool is_missing_file(const um::Error& error) {
  const auto* const of_system = dynamic_cast<const um::SystemError*>(&error);
  return of_system != nullptr && of_system->code() == ENOENT;
}

bool WatchedManifest::is_replaced() const {
  constexpr std::chrono::milliseconds kMoment{20};
  if (is_changed()) return true;
  std::this_thread::sleep_for(kMoment);
  return is_changed();
}

bool WatchedManifest::is_changed() const {
  std::error_code ignored;
  return text() != text_ || !fs::exists(fs::symlink_status(path_, ignored));
}

std::optional<std::string> WatchedManifest::text() const {
  try {
    return um::InputFile{path_}.text(prefetch::kLargestJsonFile);
  } catch (const um::Error&) {
    return std::nullopt;
  }
}

std::vector<CheckpointFinding> verify_checkpoints(const fs::path& folder) {
  std::vector<CheckpointFinding> findings;
  for (int looks = kMostLooks; findings.empty() && looks > 0; --looks) {
    const std::vector<fs::path> paths = find_manifests(folder);
    if (paths.empty()) break;
    for (const fs::path& path : paths) {
      if (auto finding = finding_of(path)) findings.push_back(std::move(*finding));
    }
  }
  if (findings.empty()) throw um::Error{"there is no checkpoint in " + folder.string()};
  return findings;
}

ChosenCheckpoint choose_checkpoint(const fs::path& folder, Meanwhile meanwhile) {
  if (!holds_checkpoint(folder)) {
    throw um::Error{"there is no checkpoint in " + folder.string() +
                    "; give the folder of a train --checkpoint"};
  }
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
    throw another_training(chosen, "network", um::quoted(found.network), um::quoted(key.network));
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
  std::string network;
  try {
    const auto paths = find_manifests(folder);
    if (!paths.empty()) network = " of " + read_manifest(paths.front()).checkpoint.key.network;
  } catch (const um::Error&) {
    // It is damaged, and in the way all the same.
  }
  throw um::Error{"there is a checkpoint" + network + " in " + folder.string() +
                  "; give --resume to go on from it, or another folder"};
}

KeptSettings read_settings(const fs::path& folder) {
  expect_checkpoint(folder);
  return choose_checkpoint(folder).manifest.checkpoint.settings;
}

}  // namespace spillway
