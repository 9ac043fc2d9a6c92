#include "src/train/checkpoint/checkpoint.h"

#include <charconv>
#include <sstream>
#include <string_view>
#include <utility>

#include "prefetch/files/json.h"
#include "src/io/file_digest.h"
#include "src/train/checkpoint/settings.h"
#include "um/files/folder.h"
#include "um/text/wording.h"

namespace spillway {
namespace {

using nlohmann::json;
using prefetch::JsonView;

constexpr const char* kCheckpointFormat = "spillway-checkpoint";
constexpr std::uint64_t kCheckpointVersion = 4;  // from 4 on there are digests
constexpr const char* kSeal = "sha256";

std::string digest_of(const json& unsealed) { return sha256_of(unsealed.dump()); }

bool is_sealed(json object) {
  const auto seal = object.find(kSeal);
  if (seal == object.end()) return false;
  const json found = *seal;
  object.erase(seal);
  return found == digest_of(object);
}

// Throws unless the file is a whole one of ours.
void expect_whole(const prefetch::JsonFile& file, const std::string& path) {
  const JsonView root = file.root();
  const bool has_format = root.has("format") && file.value()["format"] == kCheckpointFormat;
  if (!is_sealed(file.value())) {
    const bool is_older =
        has_format && !root.has(kSeal) && root.at("version").integer() < kCheckpointVersion;
    if (is_older) {
      throw ForeignCheckpoint{
          path + " is of version " + std::to_string(root.at("version").integer()) +
          ", which has no digests, so that nothing can prove it whole; end that "
          "training with the spillway that began it, or begin anew in another "
          "--checkpoint folder"};
    }
    throw um::Error{path + " does not match its own digest: it is damaged, or was changed by hand"};
  }
  try {
    file.expect_format(kCheckpointFormat, kCheckpointVersion);
  } catch (const um::Error& error) {
    throw ForeignCheckpoint{error.what()};
  }
}

json to_json(const StoredFile& file) {
  return {{"file", file.name}, {"bytes", file.bytes}, {"sha256", file.sha256}};
}

StoredFile read_file(const JsonView& view) {
  const JsonView name = view.at("file");
  if (!um::is_file_name(name.string())) throw name.error("is no file name");
  return {.name = name.string(),
          .bytes = view.at("bytes").integer(),
          .sha256 = view.at("sha256").string()};
}

json lines_of(const std::string& text) {
  json lines = json::array();
  std::istringstream stream{text};
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

std::string read_lines(const JsonView& lines) {
  std::string text;
  for (std::size_t i = 0; i < lines.size(); ++i) text += lines.at(i).string() + '\n';
  return text;
}

// The network's text as a list of lines.
json to_json(const KeptTextModel& model) {
  json object{{"network_file", lines_of(model.network)}};
  if (!model.byte_pairs.empty()) object["byte_pairs_sha256"] = model.byte_pairs;
  return object;
}

std::string read_network_file(const JsonView& root) {
  return root.has("network_file") ? read_lines(root.at("network_file")) : std::string{};
}

std::optional<KeptTextModel> read_text_model(const JsonView& root) {
  if (!root.has("text_model")) return std::nullopt;
  const JsonView view = root.at("text_model");
  KeptTextModel model;
  model.network = read_lines(view.at("network_file"));
  if (view.has("byte_pairs_sha256")) model.byte_pairs = view.at("byte_pairs_sha256").string();
  return model;
}

// Of a list; none where there is no such.
std::vector<std::string> read_strings(const JsonView& root, const char* key) {
  std::vector<std::string> strings;
  if (!root.has(key)) return strings;
  const JsonView list = root.at(key);
  for (std::size_t i = 0; i < list.size(); ++i) strings.push_back(list.at(i).string());
  return strings;
}

std::optional<ImageOptions> read_kept_images(const JsonView& root) {
  if (!root.has("images")) return std::nullopt;
  return read_images(root.at("images"));
}

// A user's text, which may hold what no JSON file should.
std::string printable(std::string text) {
  for (char& c : text) {
    if (static_cast<unsigned char>(c) < ' ' || c == '\x7f') c = '?';
  }
  return text;
}

Precision read_precision(const JsonView& precision) {
  if (const auto found = find_precision(precision.string())) return *found;
  throw precision.error("is not fp32, tf32 or bf16");
}

std::optional<std::size_t> read_count(const JsonView& root, const char* key) {
  if (!root.has(key)) return std::nullopt;
  const JsonView size = root.at(key);
  if (size.integer(root.at("batch").integer()) == 0) throw size.error("is zero");
  return size.integer();
}

// Earlier programs wrote the size as sub_batch, or the number of equal micro-batches as shards.
std::optional<std::size_t> read_micro_batch_size(const JsonView& root) {
  const std::uint64_t batch = root.at("batch").integer();
  for (const char* const key : {"micro_batch_size", "sub_batch"}) {
    if (const auto size = read_count(root, key)) return size;
  }
  const auto shards = read_count(root, "shards");
  if (!shards || *shards == 1) return std::nullopt;
  if (batch % *shards != 0) throw root.at("shards").error("does not divide the batch");
  return batch / *shards;
}

std::optional<float> read_dropout(const JsonView& root) {
  if (!root.has("dropout")) return std::nullopt;
  return read_setting(root.at("dropout"), kDropoutRange);
}

CheckpointKey read_key(const JsonView& root) {
  return {.network = root.at("network").string(),
          .layers = root.at("layers_sha256").string(),
          .data = root.at("data").string(),
          .data_sha256 = root.at("data_sha256").string(),
          .batch = read_setting(root.at("batch"), kBatchRange),
          .seed = root.at("seed").integer()};
}

// Checkpoints of before know nothing of it, and say nothing where it is zero.
template <class Number>
Number read_if_any(const JsonView& root, const char* key, const SettingRange<Number>& range) {
  return root.has(key) ? read_setting(root.at(key), range) : Number{};
}

KeptSettings read_kept_settings(const JsonView& root) {
  return {.learning_rate = read_learning_rate(root.at("learning_rate")),
          .optimizer = read_optimizer(root.at("optimizer")),
          .label_smoothing = read_if_any(root, "label_smoothing", kLabelSmoothingRange),
          .mixing = read_mixing(root),
          .average_decay = read_if_any(root, "average_decay", kAverageDecayRange),
          .frozen = read_strings(root, "frozen"),
          .threads = read_setting(root.at("threads"), kThreadRange),
          .precision = read_precision(root.at("precision")),
          .deterministic = root.at("deterministic").boolean(),
          .micro_batch_size = read_micro_batch_size(root),
          .dropout = read_dropout(root),
          .images = read_kept_images(root),
          .evaluations = root.has("evaluations") ? read_evaluation_rule(root.at("evaluations"))
                                                 : EvaluationRule{},
          .train_samples = root.has("train_samples") ? root.at("train_samples").integer() : 0,
          .planning = read_planning(root)};
}

// Takes `begin` and the number behind it from the front of `name`. Nothing where there is none, or
// it is not written as std::to_string() does.
std::optional<std::uint64_t> take_number(std::string_view begin, std::string_view& name) {
  if (!name.starts_with(begin)) return std::nullopt;
  const char* const digits = name.data() + begin.size();
  std::uint64_t number = 0;
  const auto [end, error] = std::from_chars(digits, name.data() + name.size(), number);
  if (error != std::errc{} || std::string(digits, end) != std::to_string(number)) {
    return std::nullopt;
  }
  name.remove_prefix(static_cast<std::size_t>(end - name.data()));
  return number;
}

}  // namespace

std::string manifest_file(std::uint64_t step) { return "step-" + std::to_string(step) + ".json"; }

std::optional<std::uint64_t> step_of_manifest(const std::string& name) {
  const std::optional<std::uint64_t> step = step_of_file(name);
  return step && name == manifest_file(*step) ? step : std::nullopt;
}

std::optional<std::uint64_t> step_of_file(std::string_view name) {
  const std::optional<std::uint64_t> step = take_number("step-", name);
  if (!step) return std::nullopt;
  if (name == ".json" || name == ".safetensors" || name == "-plan.json") return step;
  const std::optional<std::uint64_t> plan = take_number("-plan-", name);
  return plan.value_or(0) > 0 && name == ".json" ? step : std::nullopt;
}

std::string tensor_file(std::uint64_t step) {
  return "step-" + std::to_string(step) + ".safetensors";
}

std::string plan_file(std::uint64_t step) { return "step-" + std::to_string(step) + "-plan.json"; }

// A path of the user's that is no UTF-8 is written as well as it can be.
std::string sealed(json object) {
  object.erase(kSeal);
  object = prefetch::as_utf8(object);
  object[kSeal] = digest_of(object);
  return object.dump(1) + '\n';
}

std::string to_text(const CheckpointManifest& manifest) {
  const auto& [key, settings, step, best, last, network_file, text_model, class_names,
               is_unjudged] = manifest.checkpoint;
  json object{{"format", kCheckpointFormat},
              {"version", kCheckpointVersion},
              {"network", key.network},
              {"layers_sha256", key.layers},
              {"data", printable(key.data)},
              {"data_sha256", key.data_sha256},
              {"batch", key.batch},
              {"seed", key.seed},
              {"step", step},
              {"tensors", to_json(manifest.tensors)},
              {"plans", json::array()}};
  object.update(to_json(settings));
  if (best) object["best"] = to_json(*best);
  if (last) object["last_evaluation"] = to_json(*last);
  if (!network_file.empty()) object["network_file"] = lines_of(network_file);
  if (is_unjudged) object["lacks_evaluation"] = true;
  if (text_model) object["text_model"] = to_json(*text_model);
  for (const std::string& name : class_names) object["class_names"].push_back(printable(name));
  object["tensors"]["sha256_of_each"] = manifest.tensor_digests;
  for (const StoredFile& plan : manifest.plans) object["plans"].push_back(to_json(plan));
  return sealed(std::move(object));
}

CheckpointManifest read_manifest(const std::filesystem::path& path) {
  const prefetch::JsonFile file{path.string()};
  expect_whole(file, path.string());
  const JsonView root = file.root();
  CheckpointManifest manifest{
      .checkpoint = Checkpoint{.key = read_key(root),
                               .settings = read_kept_settings(root),
                               .step = read_setting(root.at("step"), kStepRange),
                               .best = read_best(root),
                               .last = read_last_evaluation(root),
                               .network_file = read_network_file(root),
                               .text_model = read_text_model(root),
                               .class_names = read_strings(root, "class_names"),
                               .lacks_evaluation = root.has("lacks_evaluation") &&
                                                   root.at("lacks_evaluation").boolean()},
      .tensors = read_file(root.at("tensors"))};
  const std::uint64_t named = step_of_manifest(path.filename()).value_or(manifest.checkpoint.step);
  if (named != manifest.checkpoint.step) {
    throw root.at("step").error("is not that of the file's name");
  }
  const JsonView each = root.at("tensors").at("sha256_of_each");
  for (const auto& [name, digest] : file.value()["tensors"]["sha256_of_each"].items()) {
    manifest.tensor_digests.emplace(name, each.at(name).string());
  }
  const JsonView plans = root.at("plans");
  for (std::size_t i = 0; i < plans.size(); ++i) manifest.plans.push_back(read_file(plans.at(i)));
  return manifest;
}

}  // namespace spillway
