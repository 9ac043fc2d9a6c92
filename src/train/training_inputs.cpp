#include "src/train/training_inputs.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "nets/text/network_file.h"
#include "src/io/data/batch_loader.h"
#include "src/io/file_digest.h"
#include "src/io/text/byte_pairs.h"
#include "src/train/checkpoint/settings.h"
#include "um/error.h"
#include "um/text/wording.h"

namespace spillway {
namespace {

constexpr std::size_t kMostSamples = 64;
constexpr std::size_t kFewestSamples = 3;
constexpr std::size_t kMostNumbers = std::size_t{1} << 24U;  // of samples
constexpr std::size_t kDigits = 16;                          // of a digest, for people

// SHA-256 of samples that are spread over all, the first and the last among them, as the first
// epoch has them: of a large data set enough to tell another one, or other decoders, apart.
std::string sampled_sha256(const Dataset& set) {
  std::vector<float> image(set.image().elements());
  std::vector<std::int32_t> labels(labels_each(set));
  const std::size_t count =
      std::min(set.size(), std::clamp(kMostNumbers / image.size(), kFewestSamples, kMostSamples));
  Sha256 digest;
  for (std::size_t i = 0; i < count; ++i) {
    const std::size_t index = count == 1 ? 0 : i * (set.size() - 1) / (count - 1);
    try {
      set.read(index, image);
      set.labels(index, labels);
    } catch (const um::Error&) {  // told when its turn comes, if it is not passed over
      std::ranges::fill(image, 0.F);
      std::ranges::fill(labels, -1);
    }
    digest.update(std::as_bytes(std::span{image}));
    digest.update(std::as_bytes(std::span{labels}));
  }
  return digest.hex();
}

std::string summary_of(const DatasetPair& data) {
  std::string text;
  for (const Dataset* const set : {data.train.get(), data.test.get()}) {
    if (set == nullptr) continue;
    text += (text.empty() ? "" : "; ") + set->name() + ", " + std::to_string(set->size()) +
            " samples, " + std::to_string(set->classes()) + " classes, content " +
            set->content_sha256().substr(0, kDigits) + ", samples " +
            sampled_sha256(*set).substr(0, kDigits);
  }
  return text;
}

std::string with_commas(const std::vector<std::string>& names) {
  std::string text;
  for (const std::string& name : names) text += (text.empty() ? "" : ", ") + name;
  return text;
}

// Returns the settings that a checkpoint keeps. Each rank may have read them from a checkpoint of
// its own.
std::string settings_text(const TrainerOptions& options, const ExecutionContext& context) {
  nlohmann::json settings = to_json(kept_settings(options, context, {}));
  settings["batch"] = options.step.batch;
  settings["seed"] = options.training.seed;
  settings.erase("threads");  // compared by themselves
  settings["planning"].erase("device");
  settings["planning"].erase("far_folder");  // ranks may run in folders of their own
  return settings.dump();
}

// Returns the data to learn from and to test on.
DatasetPair open_data(const TrainerOptions& options, const TrainerEvents& events,
                      const std::stop_token& stop) {
  DatasetPair data = open_dataset(options.data, dataset_options(options, options.step.batch));
  if (options.train_samples > 0) {
    data.train = first_samples(std::move(data.train), options.train_samples);
    expect_batch(data.train->size(), options.step.batch);
  }
  expect_whole_files(data, {.test = options.training.evaluate_every != 0},
                     {.on_progress = events.on_looking, .stop = stop});
  return data;
}

// Throws um::Error where something looks at evaluations, and none would come.
void expect_evaluation(const TrainerOptions& options, const DatasetPair& data) {
  const TrainOptions& training = options.training;
  const bool has_use =
      options.checkpoint.keep_best || options.patience > 0 || training.has_confusion;
  if (!has_use || training.evaluate_every.value_or(0) > 0) return;
  const std::string what =
      "keeping the best checkpoint, stopping early and the confusion matrix are of evaluations, "
      "and there is none: ";
  if (training.evaluate_every == 0) throw um::Error{what + "evaluations are turned off"};
  const std::uint64_t first = steps_per_epoch(data.train->size(), options.step.batch);
  const std::uint64_t last = last_step(training, data, options.step.batch);
  if (last >= first) return;
  throw um::Error{what + "the first one follows the epoch's last step, " + std::to_string(first) +
                  ", and the training ends after " + um::count_of(last, "step") +
                  "; give --eval-every N, or more steps"};
}

}  // namespace

void expect_ranks_agree(const TrainerOptions& options, const DatasetPair& data,
                        const ExecutionContext& context) {
  Communicator& communicator = options.ranks.communicator;
  if (communicator.size() == 1) return;
  std::vector<NamedText> texts = options.ranks.agreement;
  texts.push_back({.name = "settings", .text = settings_text(options, context)});
  texts.push_back({.name = "what they find in the checkpoint folder",
                   .text = options.checkpoint.resume ? "a checkpoint" : ""});
  if (!options.tokenizer.empty()) {
    texts.push_back({.name = "tokenizer", .text = read_byte_pairs(options.tokenizer).sha256});
  }
  texts.push_back({.name = "network", .text = nets::to_text(options.network)});
  texts.push_back({.name = "data",
                   .text = summary_of(data),
                   .advice = "copy the same data to the machines of all ranks"});
  texts.push_back({.name = "class names", .text = with_commas(data.class_names)});
  texts.push_back({.name = "threads", .text = std::to_string(context.threads)});
  expect_agreement(communicator, texts);
  const std::array kernels{
      NamedText{.name = "kernels",  // whose text has the threads, too
                .text = context.backend->description(),
                .advice = "install the same libraries for all ranks; where processors differ, "
                          "ONEDNN_MAX_CPU_ISA=AVX2 in the environment of all has them use the same "
                          "instructions"}};
  expect_agreement(communicator, kernels);
}

TrainingInputs open_inputs(const std::function<ExecutionContext()>& open_context,
                           TrainerOptions given, const TrainerEvents& events,
                           const std::stop_token& stop) {
  TrainerOptions options = checked_options(std::move(given));
  DatasetPair data = open_data(options, events, stop);
  TrainingInputs inputs{.options = std::move(options),
                        .data = std::move(data),
                        .context = open_context(),
                        .device_communicator = nullptr};
  TrainerOptions& settled = inputs.options;
  settled.training = whole_training(settled.training, inputs.data, settled.step.batch);
  expect_ranks_agree(settled, inputs.data, inputs.context);
  if (settled.ranks.join_devices) {
    inputs.device_communicator = settled.ranks.join_devices(inputs.context);
    if (inputs.device_communicator) {
      settled.ranks.device_communicator = *inputs.device_communicator;
    }
  }
  settled.step.has_byte_images = can_load_bytes(*inputs.data.train, settled.training.mixing) &&
                                 inputs.data.test->as_bytes() != nullptr;
  expect_evaluation(settled, inputs.data);
  return inputs;
}

}  // namespace spillway
