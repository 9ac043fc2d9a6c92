#include "src/train/checkpoint.h"

#include <nlohmann/json.hpp>
#include <span>
#include <system_error>
#include <utility>

#include "prefetch/files/json.h"
#include "prefetch/files/plan_file.h"
#include "src/train/settings_json.h"
#include "um/error.h"
#include "um/files/replaced_file.h"

namespace spillway {
namespace {

using nlohmann::json;

constexpr const char* kDescription = "checkpoint.json";
constexpr std::uint64_t kVersion = 3;
constexpr std::uint64_t kMaxThreads = 1024;

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

void expect_same_layers(const prefetch::JsonView& root, const CheckpointKey& key) {
  const prefetch::JsonView found = root.at("layers_sha256");
  if (found.string() == key.layers) return;
  throw found.error("is not that of network '" + key.network +
                    "' as it is now: its layers have been changed since; train it as it was, or "
                    "give another --checkpoint folder");
}

std::size_t read_threads(const prefetch::JsonView& threads) {
  if (threads.integer(kMaxThreads) == 0) throw threads.error("is zero");
  return threads.integer();
}

Precision read_precision(const prefetch::JsonView& precision) {
  if (const auto found = find_precision(precision.string())) return *found;
  throw precision.error("is not fp32, tf32 or bf16");
}

std::optional<std::size_t> read_sub_batch(const prefetch::JsonView& root) {
  if (!root.has("sub_batch")) return std::nullopt;
  const prefetch::JsonView size = root.at("sub_batch");
  if (size.integer(root.at("batch").integer()) == 0) throw size.error("is zero");
  return size.integer();
}

// Whether there is a checkpoint in `folder`.
bool holds_checkpoint(const std::filesystem::path& folder) {
  const std::filesystem::path path = folder / kDescription;
  std::error_code error;
  const bool exists = std::filesystem::exists(path, error);
  if (error) throw um::system_error("cannot look for " + path.string(), error.value());
  return exists;
}

prefetch::JsonFile open_description(const std::filesystem::path& folder) {
  expect_checkpoint(folder);
  prefetch::JsonFile file{folder / kDescription};
  file.expect_format("spillway-checkpoint", kVersion);
  return file;
}

// checkpoint.json of a training with this key.
prefetch::JsonFile open_description(const std::filesystem::path& folder, const CheckpointKey& key) {
  prefetch::JsonFile file = open_description(folder);
  const prefetch::JsonView root = file.root();
  expect_same(root.at("network"), key.network);
  expect_same_layers(root, key);
  expect_same(root.at("data"), key.data);
  expect_same(root.at("batch"), key.batch);
  expect_same(root.at("seed"), key.seed);
  return file;
}

void replace_json(const std::filesystem::path& path, const json& value) {
  const std::string text = value.dump(1) + "\n";
  um::ReplacedFile file{path};
  file.write(std::as_bytes(std::span{text}));
  file.commit();
}

// Everything but the tensors of the step that was just written. A file that stays takes room,
// nothing else.
void remove_older(const std::filesystem::path& folder, const std::string& newest) {
  std::error_code ignored;
  for (std::filesystem::directory_iterator at{folder, ignored}, end; at != end;
       at.increment(ignored)) {
    const std::string name = at->path().filename();
    const bool holds_tensors = name.starts_with("step-") && name.ends_with(".safetensors");
    if (holds_tensors && name != newest) std::filesystem::remove(at->path(), ignored);
  }
}

}  // namespace

CheckpointFolder::CheckpointFolder(std::filesystem::path folder) : folder_{std::move(folder)} {
  std::error_code error;
  std::filesystem::create_directories(folder_, error);
  if (error) throw um::system_error("cannot make the folder " + folder_.string(), error.value());
  const um::ReplacedFile probe{folder_ / "probe"};  // throws now rather than after an epoch
}

void CheckpointFolder::save(const Checkpoint& checkpoint, const State& state) const {
  const std::string tensors = tensor_file(checkpoint.step);
  state.save(folder_ / tensors);
  const auto& [key, settings, step] = checkpoint;
  json description{{"format", "spillway-checkpoint"},
                   {"version", kVersion},
                   {"network", key.network},
                   {"layers_sha256", key.layers},
                   {"data", key.data},
                   {"batch", key.batch},
                   {"seed", key.seed},
                   {"step", step},
                   {"learning_rate", to_json(settings.learning_rate)},
                   {"optimizer", to_json(settings.optimizer)},
                   {"threads", settings.threads},
                   {"precision", to_string(settings.precision)},
                   {"deterministic", settings.deterministic},
                   {"tensors", tensors}};
  if (settings.sub_batch) description["sub_batch"] = *settings.sub_batch;
  replace_json(folder_ / kDescription, description);
  remove_older(folder_, tensors);
}

void CheckpointFolder::save_plan(std::size_t index, std::size_t count, const prefetch::Plan& plan,
                                 const prefetch::TaskGraph& graph) const {
  replace_json(plan_path(index, count), to_json(plan, graph));
}

std::string CheckpointFolder::plan_path(std::size_t index, std::size_t count) const {
  const bool is_last = index + 1 == count;
  return folder_ / (is_last ? "plan.json" : "plan-" + std::to_string(index + 1) + ".json");
}

std::uint64_t CheckpointFolder::load(const CheckpointKey& key, State& state) const {
  const prefetch::JsonFile file = open_description(folder_, key);
  const prefetch::JsonView root = file.root();
  const std::uint64_t step = root.at("step").integer();
  const std::string tensors = root.at("tensors").string();
  if (std::filesystem::path{tensors}.filename() != tensors) {
    throw root.at("tensors").error("is no file name");
  }
  state.load(folder_ / tensors);
  return step;
}

void CheckpointFolder::expect(const CheckpointKey& key) const {
  static_cast<void>(open_description(folder_, key));
}

void CheckpointFolder::expect_empty() const { expect_no_checkpoint(folder_); }

void expect_checkpoint(const std::filesystem::path& folder) {
  if (holds_checkpoint(folder)) return;
  throw um::Error{"there is no checkpoint in " + folder.string() +
                  "; train without --resume first"};
}

void expect_no_checkpoint(const std::filesystem::path& folder) {
  if (!holds_checkpoint(folder)) return;
  throw um::Error{"there is a checkpoint in " + folder.string() +
                  "; give --resume to go on from it, or another folder"};
}

KeptSettings read_settings(const std::filesystem::path& folder) {
  const prefetch::JsonFile file = open_description(folder);
  const prefetch::JsonView root = file.root();
  return {.learning_rate = read_learning_rate(root.at("learning_rate")),
          .optimizer = read_optimizer(root.at("optimizer")),
          .threads = read_threads(root.at("threads")),
          .precision = read_precision(root.at("precision")),
          .deterministic = root.at("deterministic").boolean(),
          .sub_batch = read_sub_batch(root)};
}

}  // namespace spillway
