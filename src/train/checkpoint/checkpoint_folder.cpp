#include "src/train/checkpoint/checkpoint_folder.h"

#include <algorithm>
#include <iterator>
#include <span>
#include <string_view>
#include <utility>

#include "prefetch/files/json.h"
#include "prefetch/files/plan_file.h"
#include "src/io/file_digest.h"
#include "src/io/safetensors.h"
#include "src/train/checkpoint/checkpoint_choice.h"
#include "um/error.h"
#include "um/files/input_file.h"
#include "um/files/replaced_file.h"
#include "um/text/wording.h"

namespace spillway {
namespace {

namespace fs = std::filesystem;

// Whether a file of this name may be ours: what we would write next to nothing else.
bool is_name_of_ours(std::string_view name) {
  return name == kNewestManifest || name == "probe" || step_of_file(name);
}

std::map<std::string, std::string> by_name(const std::vector<StoredTensor>& tensors,
                                           const std::vector<std::string>& digests) {
  std::map<std::string, std::string> named;
  for (std::size_t i = 0; i < tensors.size(); ++i) named.emplace(tensors[i].name, digests.at(i));
  return named;
}

std::set<std::string> files_of(const CheckpointManifest& manifest) {
  std::set<std::string> names{manifest.tensors.name};
  for (const StoredFile& plan : manifest.plans) names.insert(plan.name);
  return names;
}

}  // namespace

CheckpointFolder::CheckpointFolder(const fs::path& folder, std::size_t keep)
    : folder_{um::Folder::make(folder)}, lock_{folder_}, keep_{keep} {
  um::expects(keep > 0, "at least one checkpoint to keep");
  remove_unfinished();
  find_kept();
  const um::ReplacedFile probe{folder_, "probe"};  // throws now rather than after an epoch
}

void CheckpointFolder::remove_unfinished() const {
  for (const std::string& name : folder_.names()) {
    if (is_name_of_ours(um::replaced_by(name))) folder_.remove(name);
  }
}

void CheckpointFolder::find_kept() {
  for (const fs::path& path : find_manifests(folder_.path())) {
    if (path.filename() == kNewestManifest) continue;  // a copy
    try {
      kept_.push_back(read_manifest(path));
    } catch (const um::Error&) {
      continue;  // what it lists is not known, so that it stays
    }
  }
}

void CheckpointFolder::replace(const std::string& name, const std::string& text) const {
  um::ReplacedFile file{folder_, name};
  file.write(std::as_bytes(std::span{text}));
  file.commit();
}

// Plans and tensors are on the disk before a manifest names them, all are before checkpoint.json
// does, and that is before anything older goes.
void CheckpointFolder::save(const Checkpoint& checkpoint, const State& state) {
  const std::vector<StoredTensor> tensors = state.tensors();
  CheckpointManifest manifest{.checkpoint = checkpoint,
                              .tensors = {.name = tensor_file(checkpoint.step)}};
  SafetensorsWriter writer{folder_, manifest.tensors.name, tensors};
  state.write(writer);
  TensorFileDigests digests = writer.flush();
  manifest.tensors.bytes = digests.bytes;
  manifest.tensors.sha256 = std::move(digests.file);
  manifest.tensor_digests = by_name(tensors, digests.tensors);
  manifest.plans = write_plan(checkpoint.step);
  const std::string text = to_text(manifest);
  um::ReplacedFile description{folder_, manifest_file(checkpoint.step)};
  description.write(std::as_bytes(std::span{text}));
  description.flush();
  writer.take_place();
  folder_.sync();
  description.take_place();
  folder_.sync();
  replace(kNewestManifest, text);

  std::erase_if(kept_, [&](const CheckpointManifest& old) {
    return old.checkpoint.step == checkpoint.step;  // was replaced
  });
  kept_.insert(kept_.begin(), std::move(manifest));
  rotate();
}

// Removes what has become too old.
void CheckpointFolder::rotate() {
  std::size_t others = 0;  // than the best one
  std::vector<CheckpointManifest> stay;
  for (CheckpointManifest& each : kept_) {
    const bool stays = each.checkpoint.step == best_ || others++ < keep_;
    (stays ? stay : outlived_).push_back(std::move(each));
  }
  kept_ = std::move(stay);
  remove_outlived();
}

// What cannot be removed now is tried again after the next checkpoint: the new one is saved.
void CheckpointFolder::remove_outlived() {
  std::set<std::string> stays;
  for (const CheckpointManifest& manifest : kept_) {
    stays.merge(files_of(manifest));
    stays.insert(manifest_file(manifest.checkpoint.step));
  }
  std::erase_if(outlived_, [&](const CheckpointManifest& old) {
    try {
      remove(old, stays);
      return true;
    } catch (const um::Error&) {
      return false;
    }
  });
}

// The manifest last: while there is one, it is known what else there is to remove. A manifest may
// name any file of the folder, but those that have not the names of its checkpoint are not ours.
void CheckpointFolder::remove(const CheckpointManifest& old,
                              const std::set<std::string>& stays) const {
  const std::uint64_t step = old.checkpoint.step;
  for (const std::string& name : files_of(old)) {
    if (step_of_file(name) == step && !stays.contains(name)) folder_.remove(name);
  }
  const std::string name = manifest_file(step);
  if (!stays.contains(name)) folder_.remove(name);
}

void CheckpointFolder::set_plan(const prefetch::Plan& plan, const prefetch::TaskGraph& graph) {
  plan_ = to_json(plan, graph).dump(1) + "\n";
}

// Its name is on the disk once the folder is.
std::vector<StoredFile> CheckpointFolder::write_plan(std::uint64_t step) const {
  if (plan_.empty()) return {};
  StoredFile stored{.name = plan_file(step), .bytes = plan_.size(), .sha256 = sha256_of(plan_)};
  um::ReplacedFile file{folder_, stored.name};
  file.write(std::as_bytes(std::span{plan_}));
  file.flush();
  file.take_place();
  return {std::move(stored)};
}

ChosenCheckpoint CheckpointFolder::go_on(const CheckpointKey& key) {
  ChosenCheckpoint chosen = choose_checkpoint(folder_.path(), Meanwhile::kIsLocked);
  expect_same_training(chosen, key);
  const std::uint64_t step = chosen.manifest.checkpoint.step;
  const auto newer = std::stable_partition(
      kept_.begin(), kept_.end(),
      [&](const CheckpointManifest& each) { return each.checkpoint.step <= step; });
  outlived_.insert(outlived_.end(), std::make_move_iterator(newer),
                   std::make_move_iterator(kept_.end()));
  kept_.erase(newer, kept_.end());
  return chosen;
}

void CheckpointFolder::load(const ChosenCheckpoint& chosen, State& state) const {
  const CheckpointManifest& manifest = chosen.manifest;
  state.load(folder_.path() / manifest.tensors.name, manifest.tensor_digests);
}

// Leaves newer checkpoints, none of which verifies: the next training replaces or removes them.
void CheckpointFolder::settle(const ChosenCheckpoint& chosen) {
  const std::uint64_t step = chosen.manifest.checkpoint.step;
  std::erase_if(kept_, [&](const CheckpointManifest& each) {
    return each.checkpoint.step == step;  // which may be another one than was chosen
  });
  kept_.insert(kept_.begin(), chosen.manifest);
  try {
    restore(manifest_file(step), chosen);
    restore(kNewestManifest, chosen);
  } catch (const um::Error&) {
    return;  // the older ones are still needed
  }
  outlived_.clear();
  rotate();
}

// Makes the file `name` the chosen manifest, unless it is.
void CheckpointFolder::restore(const std::string& name, const ChosenCheckpoint& chosen) const {
  try {
    const CheckpointManifest found = read_manifest(folder_.path_of(name));
    if (to_text(found) == to_text(chosen.manifest)) return;
  } catch (const um::Error&) {
    // It is missing or damaged.
  }
  replace(name, um::InputFile{chosen.path}.text(prefetch::kLargestJsonFile));
}

std::vector<std::string> CheckpointFolder::plan_paths(const ChosenCheckpoint& chosen) const {
  std::vector<std::string> paths;
  for (const StoredFile& plan : chosen.manifest.plans) paths.push_back(folder_.path_of(plan.name));
  return paths;
}

void CheckpointFolder::expect_empty() const { expect_no_checkpoint(folder_.path()); }

}  // namespace spillway
