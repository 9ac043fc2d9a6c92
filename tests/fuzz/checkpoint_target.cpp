#include <CLI/CLI.hpp>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <memory>
#include <nlohmann/json.hpp>
#include <span>
#include <stdexcept>
#include <utility>
#include <vector>

#include "src/cli/train/training_flags.h"
#include "src/host/host_backend.h"
#include "src/io/data/dataset.h"
#include "src/io/data/open_dataset.h"
#include "src/io/file_digest.h"
#include "src/io/safetensors.h"
#include "src/train/checkpoint/checkpoint_choice.h"
#include "src/train/evaluator.h"
#include "src/train/trainer.h"
#include "tests/fuzz/resealed.h"
#include "tests/fuzz/target.h"
#include "tests/temporary_folder.h"
#include "um/error.h"
#include "um/host/host_device.h"

namespace spillway::fuzz {
namespace {

namespace fs = std::filesystem;

using nlohmann::json;

std::string content(const fs::path& path) {
  std::ifstream file{path, std::ios::binary};
  return {std::istreambuf_iterator<char>{file}, {}};
}

// Most damage only breaks the manifest's digest, so a version with a valid digest is read, too.
void read_manifests(const std::string& input, const fs::path& folder) {
  const auto read = [&](const std::string& text) {
    static_cast<void>(read_manifest(write(folder / manifest_file(1), text)));
  };
  try {
    read(input);
  } catch (const um::Error&) {
    const std::optional<std::string> resealed = resealed_manifest(input);
    if (!resealed) throw;
    read(*resealed);
  }
}

// Flags of a training of two steps, and of its resumption for a third.
const std::string kTraining =
    "--net lenet --image-size 12 --classes 3 --batch 2 --threads 1 --device host "
    "--conv-algorithm direct --budget min+50% ";

ExecutionContext one_thread() { return host::open_context(std::make_unique<um::HostDevice>(), 1); }

TrainingSummary train(const std::string& flags) {
  CLI::App command;
  cli::TrainingFlags training;
  training.add_to(command);
  try {
    command.parse(kTraining + flags);
    training.complete(command);
  } catch (const CLI::Error& error) {
    throw std::logic_error{std::string{"a file is taken for a mistake in the flags: "} +
                           error.what()};
  }
  return Trainer{[] { return one_thread(); }, training.trainer({})}.run();
}

// The files of a valid checkpoint.
struct Files {
  std::string manifest;
  std::string plan;
  std::string tensors;
};

constexpr std::uint64_t kStep = 2;

Files made_by(const std::string& flags) {
  const test::TemporaryFolder folder;
  train(flags + " --planner capacity --steps 2 --checkpoint " + folder.path().string());
  return {.manifest = content(folder.path() / manifest_file(kStep)),
          .plan = content(folder.path() / plan_file(kStep)),
          .tensors = content(folder.path() / tensor_file(kStep))};
}

json stored(const std::string& name, const std::string& bytes) {
  return {{"file", name}, {"bytes", bytes.size()}, {"sha256", sha256_of(bytes)}};
}

// Returns the digest of each tensor in a file that may be invalid.
json digests_of(const std::string& path, json digests) {
  try {
    const SafetensorsReader file{path};
    for (std::size_t i = 0; i < file.tensors().size(); ++i) {
      std::size_t count = 1;
      for (const std::size_t extent : file.tensors()[i].shape) count *= extent;
      std::vector<float> values(count);
      file.read(i, values);
      digests[file.tensors()[i].name] = sha256_of(std::as_bytes(std::span{values}));
    }
  } catch (const um::Error&) {
    // Invalid files are an expected input.
  }
  return digests;
}

// Returns the files of the training with the manifest `input`; the first ones for other inputs.
const Files& files_of(const std::string& input, const std::vector<Files>& all) {
  for (const Files& files : all) {
    if (input.find(sha256_of(files.tensors)) != std::string::npos) return files;
  }
  return all.front();
}

// Writes a checkpoint with the input as its manifest, plan or tensors.
void write_checkpoint(const Files& whole, const std::string& input, const fs::path& folder) {
  const std::optional<std::string> manifest = resealed_manifest(input);
  const bool is_json = json::accept(input);
  const std::string plan = restamped(is_json && !manifest ? input : "", whole.plan)
                               .value_or(is_json && !manifest ? input : whole.plan);
  const std::string& tensors = is_json ? whole.tensors : input;
  write(folder / plan_file(kStep), plan);
  const std::string path = write(folder / tensor_file(kStep), tensors);
  json fitting = json::parse(whole.manifest);
  fitting["plans"] = json::array({stored(plan_file(kStep), plan)});
  json digests = digests_of(path, fitting["tensors"]["sha256_of_each"]);
  fitting["tensors"] = stored(tensor_file(kStep), tensors);
  fitting["tensors"]["sha256_of_each"] = std::move(digests);
  const std::string text = manifest.value_or(sealed(std::move(fitting)));
  write(folder / manifest_file(kStep), text);
  write(folder / kNewestManifest, text);
}

void judge(const fs::path& folder) {
  constexpr std::size_t kMostSamples = 64;
  TrainedNetwork trained = open_trained_network(folder, /*wants_best=*/false);
  if (trained.checkpoint.manifest.checkpoint.best) {
    trained = open_trained_network(folder, /*wants_best=*/true);
  }
  TrainerOptions options{
      .network = trained.network,
      .step = StepOptions{.batch = trained.checkpoint.manifest.checkpoint.key.batch},
      .memory = MemoryOptions{.budget = "min+50%"},
      .planning = PlanningOptions{.planner = "capacity"}};
  options.step.has_byte_images = false;
  DatasetPair data = open_dataset("synthetic", dataset_options(options, /*batch=*/1));
  const auto few = first_samples(std::move(data.test), 4);
  if (options.step.batch > kMostSamples) return;  // large batches take too long
  Evaluator evaluator{one_thread(), std::move(trained), std::move(options)};
  static_cast<void>(evaluator.evaluate(*few, {}));
}

// Uses the checkpoint in several ways, as each accepts what others refuse. The first error counts.
void use(const fs::path& folder) {
  std::exception_ptr refusal;
  const auto attempt = [&](const auto& work) {
    try {
      work();
    } catch (const um::Error&) {
      if (!refusal) refusal = std::current_exception();
    }
  };
  attempt([&] { static_cast<void>(verify_checkpoints(folder)); });
  attempt([&] { judge(folder); });
  attempt([&] { train("--steps 3 --resume --keep 1 --checkpoint " + folder.string()); });
  if (refusal) std::rethrow_exception(refusal);
}

}  // namespace

Target checkpoint_target() { return {"checkpoint", {}, read_manifests}; }

Target resumed_target() {
  ::setenv("SPILLWAY_MEASURING_TIME", "0.001", 1);
  const Files sgd = made_by("--eval-every 0 --nesterov --weight-decay 0.001");
  const Files adam = made_by(
      "--optimizer adamw --clip-norm 1 --schedule cosine --cosine-steps 9 --warmup-steps 1 "
      "--ema 0.9 --label-smoothing 0.1 --mixup 0.2 --train-samples 100 "
      "--freeze conv1 --eval-every 2 --early-stop 3");
  const Files steps = made_by(
      "--eval-every 0 --optimizer rmsprop --schedule step --step-every 2 --micro-batches 2");
  return {kResumed,
          {sgd.manifest, adam.manifest, steps.manifest, sgd.plan, sgd.tensors},
          [all = std::vector{sgd, adam, steps}](const std::string& input, const fs::path& folder) {
            for (const auto& entry : fs::directory_iterator{folder}) fs::remove_all(entry);
            write_checkpoint(files_of(input, all), input, folder);
            use(folder);
          }};
}

}  // namespace spillway::fuzz
