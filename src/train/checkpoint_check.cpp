#include "src/train/checkpoint_check.h"

#include <algorithm>
#include <functional>
#include <numeric>
#include <span>
#include <utility>

#include "src/files/file_digest.h"
#include "src/files/finite.h"
#include "src/files/safetensors.h"
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

void expect_tensors(const fs::path& folder, const CheckpointManifest& manifest) {
  const um::InputFile whole = open_whole(folder, manifest.tensors);
  const fs::path& path = whole.path();
  if (sha256_of(whole) != manifest.tensors.sha256) throw damaged(path, manifest);
  const SafetensorsReader file{path};
  for (std::size_t i = 0; i < file.tensors().size(); ++i) {
    const std::string& name = file.tensors()[i].name;
    if (!manifest.tensor_digests.contains(name)) {
      throw um::Error{path.string() + " has a tensor '" + name + "' without a digest"};
    }
    if (!is_finite(values_of(file, i))) {
      throw um::Error{"tensor '" + name + "' of " + path.string() + " " + kNotFinite};
    }
  }
}

CheckpointFinding finding_of(const fs::path& path) {
  CheckpointFinding finding{.manifest = path.filename()};
  try {
    const CheckpointManifest manifest = read_manifest(path);
    finding.step = manifest.checkpoint.step;
    finding.tensors = manifest.tensor_digests.size();
    finding.bytes = manifest.tensors.bytes;
    for (const StoredFile& plan : manifest.plans) finding.bytes += plan.bytes;
    expect_verified(path.parent_path(), manifest);
  } catch (const um::Error& error) {
    finding.problem = error.what();
  }
  return finding;
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

void expect_verified(const fs::path& folder, const CheckpointManifest& manifest) {
  expect_tensors(folder, manifest);
  for (const StoredFile& plan : manifest.plans) {
    const um::InputFile file = open_whole(folder, plan);
    if (sha256_of(file) != plan.sha256) {
      throw um::Error{file.path().string() +
                      " does not match its digest: it is damaged, or was "
                      "changed by hand"};
    }
  }
}

std::vector<CheckpointFinding> verify_checkpoints(const fs::path& folder) {
  std::vector<CheckpointFinding> findings;
  for (const fs::path& path : find_manifests(folder)) {
    CheckpointFinding finding = finding_of(path);
    const bool is_gone = finding.problem && std::ranges::count(find_manifests(folder), path) == 0;
    if (!is_gone) findings.push_back(std::move(finding));
  }
  if (findings.empty()) throw um::Error{"there is no checkpoint in " + folder.string()};
  return findings;
}

}  // namespace spillway
