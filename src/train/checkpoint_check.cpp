#include "src/train/checkpoint_check.h"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <functional>
#include <numeric>
#include <span>
#include <system_error>
#include <thread>
#include <utility>

#include "prefetch/files/json.h"
#include "src/files/file_digest.h"
#include "src/files/finite.h"
#include "um/files/folder.h"
#include "um/text/count_of.h"

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

}  // namespace spillway
