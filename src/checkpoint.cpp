#include "src/checkpoint.h"

#include <nlohmann/json.hpp>
#include <span>
#include <system_error>
#include <utility>

#include "prefetch/json.h"
#include "src/replaced_file.h"
#include "um/error.h"

namespace spillway {
namespace {

using nlohmann::json;

constexpr const char* kDescription = "checkpoint.json";

std::string tensor_file(std::uint64_t step) {
  return "step-" + std::to_string(step) + ".safetensors";
}

void expect_same(const prefetch::JsonView& found, const std::string& wanted) {
  if (found.string() == wanted) return;
  throw found.error("is '" + found.string() + "', but this training's is '" + wanted +
                    "'; give the same flags, or another --checkpoint folder");
}

void expect_same(const prefetch::JsonView& found, std::uint64_t wanted) {
  if (found.integer() == wanted) return;
  throw found.error("is " + std::to_string(found.integer()) + ", but this training's is " +
                    std::to_string(wanted) +
                    "; give the same flags, or another --checkpoint folder");
}

// checkpoint.json of a training with this key.
prefetch::JsonFile open_description(const std::filesystem::path& folder, const CheckpointKey& key) {
  expect_checkpoint(folder);
  prefetch::JsonFile file{folder / kDescription};
  file.expect_format("spillway-checkpoint", 1);
  const prefetch::JsonView root = file.root();
  expect_same(root.at("network"), key.network);
  expect_same(root.at("data"), key.data);
  expect_same(root.at("batch"), key.batch);
  expect_same(root.at("seed"), key.seed);
  return file;
}

// Everything but the tensors of the step that was just written.
void remove_older(const std::filesystem::path& folder, const std::string& newest) {
  for (const auto& entry : std::filesystem::directory_iterator{folder}) {
    const std::string name = entry.path().filename();
    const bool holds_tensors = name.starts_with("step-") && name.ends_with(".safetensors");
    std::error_code ignored;  // a file that stays takes room, nothing else
    if (holds_tensors && name != newest) std::filesystem::remove(entry.path(), ignored);
  }
}

}  // namespace

CheckpointFolder::CheckpointFolder(std::filesystem::path folder) : folder_{std::move(folder)} {
  std::error_code error;
  std::filesystem::create_directories(folder_, error);
  if (error) throw um::system_error("cannot make the folder " + folder_.string(), error.value());
  const ReplacedFile probe{folder_ / "probe"};  // throws now rather than after an epoch
}

void CheckpointFolder::save(const Checkpoint& checkpoint) const {
  const std::string tensors = tensor_file(checkpoint.step);
  write_safetensors(folder_ / tensors, checkpoint.tensors);
  const json object{{"format", "spillway-checkpoint"},
                    {"version", 1},
                    {"network", checkpoint.key.network},
                    {"data", checkpoint.key.data},
                    {"batch", checkpoint.key.batch},
                    {"seed", checkpoint.key.seed},
                    {"step", checkpoint.step},
                    {"learning_rate", checkpoint.learning_rate},
                    {"tensors", tensors}};
  const std::string text = object.dump(1) + "\n";
  ReplacedFile file{folder_ / kDescription};
  file.write(std::as_bytes(std::span{text}));
  file.commit();
  remove_older(folder_, tensors);
}

Checkpoint CheckpointFolder::load(const CheckpointKey& key) const {
  const prefetch::JsonFile file = open_description(folder_, key);
  const prefetch::JsonView root = file.root();
  const std::string tensors = root.at("tensors").string();
  if (std::filesystem::path{tensors}.filename() != tensors) {
    throw root.at("tensors").error("is no file name");
  }
  return {.key = key,
          .step = root.at("step").integer(),
          .learning_rate = static_cast<float>(root.at("learning_rate").number()),
          .tensors = read_safetensors(folder_ / tensors).tensors};
}

void CheckpointFolder::expect(const CheckpointKey& key) const {
  static_cast<void>(open_description(folder_, key));
}

bool CheckpointFolder::has_checkpoint() const {
  return std::filesystem::exists(folder_ / kDescription);
}

void expect_checkpoint(const std::filesystem::path& folder) {
  if (std::filesystem::exists(folder / kDescription)) return;
  throw um::Error{"there is no checkpoint in " + folder.string() +
                  "; train without --resume first"};
}

}  // namespace spillway
