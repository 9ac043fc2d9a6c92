#include "src/train/trainer_options.h"

#include <filesystem>

#include "nets/layer_role.h"
#include "nets/network.h"
#include "src/io/data/dataset.h"
#include "src/io/data/open_dataset.h"
#include "src/plan/micro_batch_choice.h"
#include "src/program/combinations.h"
#include "src/train/checkpoint/settings.h"
#include "um/error.h"
#include "um/text/wording.h"

namespace spillway {

// Throws where several ranks cannot train so together.
void expect_shareable(const TrainerOptions& options) {
  const Communicator& communicator = options.ranks.communicator;
  if (communicator.size() == 1) return;
  if (options.planning.planner == "on-demand") {
    throw um::Error{
        "page faults alone (--planner on-demand) go with one rank only; leave out --ranks"};
  }
}

TrainerOptions checked_options(TrainerOptions options) {
  expect_shareable(options);
  if (!options.initial.weights.empty() && options.checkpoint.resume) {
    throw um::Error{"a training that goes on has the weights of its checkpoint, not those of " +
                    options.initial.weights};
  }
  options.step.mixes_labels = options.training.mixing.is_on();
  if (options.step.mixes_labels) expect_mixable(options.network, options.step.batch);
  return options;
}

namespace {

// Returns the device and its kernels without the numbers of the device and of processors, which no
// bits depend on, and without that of threads: "host (AMD EPYC 9R14) with oneDNN 3.1, AVX2".
std::string described(const ExecutionContext& context) {
  std::string device = context.device->name();
  if (device.ends_with(" CPU)") || device.ends_with(" CPUs)")) {
    device = device.substr(0, device.rfind(", ")) + ")";
  }
  if (const std::size_t colon = device.find(':'); colon < device.find(' ')) {
    device.erase(colon, device.find(' ') - colon);  // of "cuda:1 (NVIDIA H200)"
  }
  std::string kernels = context.backend->description();
  if (kernels.ends_with(" thread") || kernels.ends_with(" threads")) {
    kernels.resize(kernels.rfind(", "));
  }
  return device + " with " + kernels;
}

// Returns the folder of a far file that was given as a folder or as a name in one; nothing for no
// file. The path is absolute, as the next start may have another current folder.
std::string folder_of(const std::string& far_file) {
  if (far_file.empty()) return far_file;
  const auto path = std::filesystem::absolute(far_file).lexically_normal();
  return (is_directory(path) ? path : path.parent_path()).string();
}

KeptPlanning kept_planning(const TrainerOptions& options, const ExecutionContext& context) {
  const std::optional<MemoryMode> mode = options.memory.mode;
  return {.budget = options.memory.budget,
          .memory = mode ? std::string{to_string(*mode)} : "auto",
          .planner = options.planning.planner,
          .may_recompute = options.planning.may_recompute,
          .state = std::string{to_string(options.planning.state)},
          .update = std::string{to_string(options.planning.update)},
          .far_folder = folder_of(options.memory.space.far.file),
          .device = described(context)};
}

}  // namespace

KeptSettings kept_settings(const TrainerOptions& options, const ExecutionContext& context,
                           const MicroBatches& batches) {
  return {.learning_rate = options.training.learning_rate,
          .optimizer = options.step.optimizer,
          .label_smoothing = options.step.label_smoothing,
          .mixing = options.training.mixing,
          .average_decay = options.step.average_decay,
          .frozen = options.step.frozen,
          .threads = context.threads,
          .precision = context.precision,
          .deterministic = context.deterministic,
          .micro_batch_size = batches.count() > 1 ? std::optional{batches.size} : std::nullopt,
          .dropout = nets::dropout_of(options.network),
          .images = is_image_folder(options.data) ? std::optional{options.images} : std::nullopt,
          .evaluations = {.every = options.training.evaluate_every,
                          .patience = options.patience,
                          .keeps_best = options.checkpoint.keep_best},
          .train_samples = options.train_samples,
          .planning = kept_planning(options, context)};
}

DatasetOptions dataset_options(const TrainerOptions& options, std::size_t batch) {
  DatasetOptions result = dataset_options(options.network, batch, options.training.seed);
  result.tokenizer = options.tokenizer;
  result.images = options.images;
  return result;
}

std::vector<std::string> zeroed_norms(const TrainerOptions& options) {
  if (!options.initial.has_zero_gamma) return {};
  std::vector<std::string> norms = nets::residual_norms(options.network);
  if (!norms.empty()) return norms;
  throw um::Error{"network " + options.network.name +
                  " has no residual block that ends with a batch norm; leave out --zero-gamma"};
}

}  // namespace spillway
