#include <fmt/core.h>

#include <CLI/CLI.hpp>
#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <system_error>
#include <utility>

#include "prefetch/files/json.h"
#include "src/cli/commands.h"
#include "src/cli/flags/output_path.h"
#include "src/cli/terminal/terminal.h"
#include "src/io/onnx/export_onnx.h"
#include "src/io/onnx/onnx_model.h"
#include "src/io/safetensors.h"
#include "src/io/weights/tensor_places.h"
#include "src/io/weights/weight_file.h"
#include "src/train/checkpoint/checkpoint_choice.h"
#include "src/train/evaluator.h"
#include "um/bytes.h"
#include "um/error.h"
#include "um/files/replaced_file.h"
#include "um/text/wording.h"

namespace spillway::cli {
namespace {

namespace fs = std::filesystem;

const std::map<std::string, WeightSource> kSources{{"hf", WeightSource::kHuggingFace},
                                                   {"torchvision", WeightSource::kTorchvision}};

constexpr const char* kOnnx = "onnx";

struct ExportFlags {
  std::string folder;
  std::string to;
  std::string file;
  bool is_best = false;
  bool wants_weights = false;  // rather than moving averages
  std::string json;
};

// Returns "resnet50" for "resnet50 3x224x224, 10 classes".
std::string network_of(const CheckpointManifest& manifest) {
  const std::string& text = manifest.checkpoint.key.network;
  return text.substr(0, text.find(' '));
}

// Returns the path to write, with links resolved. It may replace only a regular file.
fs::path place_for(const ExportFlags& flags) {
  if (flags.file == "-") throw um::Error{"export writes a file, not standard output"};
  fs::path place = um::place_of(flags.file);
  std::error_code ignored;
  if (fs::exists(place, ignored) && !fs::is_regular_file(place, ignored)) {
    throw um::Error{"cannot write " + flags.file + ": it is no ordinary file"};
  }
  const fs::path parent = place.has_parent_path() ? place.parent_path() : fs::path{"."};
  if (fs::equivalent(parent, flags.folder, ignored)) {
    throw um::Error{"cannot write " + flags.file +
                    ": that is the checkpoint's folder, whose files " +
                    "stay as they are; give another one"};
  }
  expect_writable(flags.file);
  return place;
}

// A summary of a written file.
struct WrittenFile {
  std::string network;
  std::uint64_t step = 0;
  bool is_average = false;
  ExportedWeights content;
  fs::path place;
};

void report(const ExportFlags& flags, const WrittenFile& written) {
  const std::uintmax_t bytes = fs::file_size(written.place);
  tell("{}{} of step {} as {}: {} in {}\n", written.is_average ? "averages of " : "",
       written.network, written.step, written.content.title,
       um::count_of(written.content.tensors, "tensor"), um::to_string(um::Bytes{bytes}));
  if (flags.json.empty()) return;
  prefetch::write_json({{"network", written.network},
                        {"step", written.step},
                        {"to", flags.to},
                        {"averaged", written.is_average},
                        {"file", flags.file},
                        {"tensors", written.content.tensors},
                        {"bytes", bytes}},
                       flags.json);
}

void write_weights(const ExportFlags& flags) {
  const ChosenCheckpoint chosen =
      flags.is_best ? choose_best_checkpoint(flags.folder) : choose_checkpoint(flags.folder);
  for (const std::string& problem : chosen.passed_over) tell("warning: {}\n", problem);
  const CheckpointManifest& manifest = chosen.manifest;
  const SafetensorsReader& tensors = *chosen.tensors;
  const bool is_average = !flags.wants_weights && has_averages(tensors);
  const fs::path place = place_for(flags);
  ExportedWeights content =
      export_weights(tensors, network_of(manifest),
                     {.source = kSources.at(flags.to),
                      .state = is_average ? ExportedState::kAverages : ExportedState::kWeights},
                     place);
  report(flags, {.network = network_of(manifest),
                 .step = manifest.checkpoint.step,
                 .is_average = is_average,
                 .content = std::move(content),
                 .place = place});
}

void write_network(const ExportFlags& flags) {
  expect_onnx_library(flags.file);
  TrainedNetwork trained = open_trained_network(flags.folder, flags.is_best);
  trained.uses_weights = flags.wants_weights;
  for (const std::string& problem : trained.checkpoint.passed_over) tell("warning: {}\n", problem);
  const Checkpoint& checkpoint = trained.checkpoint.manifest.checkpoint;
  const fs::path place = place_for(flags);
  OnnxModel model = export_onnx(trained.network, weights_of(trained));
  if (!checkpoint.class_names.empty()) {
    model.metadata["class_names"] = prefetch::as_utf8(checkpoint.class_names).dump();
  }
  const std::size_t tensors = model.tensors.size();
  write_onnx(std::move(model), place);
  report(flags, {.network = trained.network.name,
                 .step = checkpoint.step,
                 .is_average = checkpoint.settings.average_decay > 0 && !flags.wants_weights,
                 .content = {.title = "an ONNX network", .tensors = tensors},
                 .place = place});
}

}  // namespace

void add_export_command(CLI::App& app) {
  CLI::App* const command = app.add_subcommand(
      "export",
      "Write a checkpoint's weights by the names of Hugging Face or torchvision, or its network as "
      "ONNX");
  const auto flags = std::make_shared<ExportFlags>();  // shared with the callback
  command
      ->add_option("checkpoint", flags->folder,
                   "Folder of train --checkpoint; its newest checkpoint that verifies is written")
      ->required()
      ->type_name("DIR");
  command
      ->add_option("--to", flags->to, "Whose names the weights have, or onnx for the whole network")
      ->required()
      ->check(CLI::IsMember({"hf", "torchvision", kOnnx}));
  command
      ->add_option("file", flags->file,
                   "The safetensors or ONNX file to write, of 32-bit floats; one that is there is "
                   "replaced")
      ->required()
      ->type_name("FILE");
  command->add_flag("--best", flags->is_best,
                    "Write the checkpoint of the best evaluation, of train --keep-best");
  command->add_flag("--raw-weights", flags->wants_weights,
                    "Of a training with --ema, write the weights instead of their averages, which "
                    "evaluate and predict use");
  command->add_option("--json", flags->json,
                      "Write what was written to this file, - for standard output");
  command->footer(
      "transformers' from_pretrained() reads it as model.safetensors beside a config.json, and "
      "torchvision's load_state_dict() what safetensors.torch.load_file() makes of it. train "
      "--weights starts from such a file. An ONNX file, which train --net reads, holds the network "
      "as it predicts, without the normalization of its images.\n"
      "Example: spillway export run1 --to hf model.safetensors");
  command->callback([flags] {
    expect_writable(flags->json);
    if (flags->to == kOnnx) return write_network(*flags);
    write_weights(*flags);
  });
}

}  // namespace spillway::cli
