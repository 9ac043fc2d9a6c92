#include "src/cli/export_command.h"

#include <fmt/core.h>

#include <CLI/CLI.hpp>
#include <filesystem>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <system_error>

#include "prefetch/files/json.h"
#include "src/cli/flags/output_path.h"
#include "src/cli/terminal/tell.h"
#include "src/files/safetensors.h"
#include "src/train/checkpoint_choice.h"
#include "src/weights/export_weights.h"
#include "src/weights/kept_arrays.h"
#include "um/bytes.h"
#include "um/error.h"
#include "um/files/output_file.h"
#include "um/text/count_of.h"

namespace spillway::cli {
namespace {

namespace fs = std::filesystem;

const std::map<std::string, WeightSource> kSources{{"hf", WeightSource::kHuggingFace},
                                                   {"torchvision", WeightSource::kTorchvision}};

struct ExportFlags {
  std::string folder;
  std::string to;
  std::string file;
  bool is_best = false;
  bool wants_weights = false;  // rather than their averages
  std::string json;
};

// "resnet50" of "resnet50 3x224x224, 10 classes"
std::string network_of(const CheckpointManifest& manifest) {
  const std::string& text = manifest.checkpoint.key.network;
  return text.substr(0, text.find(' '));
}

// A link is followed, as everywhere; where it leads, a file may be replaced, but nothing else.
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

void write_weights(const ExportFlags& flags) {
  expect_writable(flags.json);
  const ChosenCheckpoint chosen =
      flags.is_best ? choose_best_checkpoint(flags.folder) : choose_checkpoint(flags.folder);
  for (const std::string& problem : chosen.passed_over) tell("warning: {}\n", problem);
  const fs::path place = place_for(flags);
  const CheckpointManifest& manifest = chosen.manifest;
  const SafetensorsReader tensors{fs::path{flags.folder} / manifest.tensors.name};
  const bool is_average = !flags.wants_weights && has_averages(tensors);
  const ExportedWeights written =
      export_weights(tensors, network_of(manifest),
                     {.source = kSources.at(flags.to),
                      .state = is_average ? ExportedState::kAverages : ExportedState::kWeights},
                     place);
  const std::uintmax_t bytes = fs::file_size(place);
  tell("{}{} of step {} as {}: {} in {}\n", is_average ? "averages of " : "", network_of(manifest),
       manifest.checkpoint.step, written.title, um::count_of(written.tensors, "tensor"),
       um::to_string(um::Bytes{bytes}));
  if (flags.json.empty()) return;
  prefetch::write_json({{"network", network_of(manifest)},
                        {"step", manifest.checkpoint.step},
                        {"to", flags.to},
                        {"averaged", is_average},
                        {"file", flags.file},
                        {"tensors", written.tensors},
                        {"bytes", bytes}},
                       flags.json);
}

}  // namespace

void add_export_command(CLI::App& app) {
  CLI::App* const command = app.add_subcommand(
      "export", "Write the weights of a checkpoint by the names of Hugging Face or torchvision");
  const auto flags = std::make_shared<ExportFlags>();  // shared: the callback keeps it
  command
      ->add_option("checkpoint", flags->folder,
                   "Folder of train --checkpoint; its newest checkpoint that verifies is written")
      ->required()
      ->type_name("DIR");
  command->add_option("--to", flags->to, "Whose names the file has")
      ->required()
      ->check(CLI::IsMember{kSources});
  command
      ->add_option("file", flags->file,
                   "The safetensors file to write, of 32-bit floats; one that is there is replaced")
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
      "transformers' from_pretrained() reads it as model.safetensors beside a config.json, and\n"
      "torchvision's load_state_dict() what safetensors.torch.load_file() makes of it.\n"
      "train --weights starts from such a file.\n"
      "Example: spillway export run1 --to hf model.safetensors");
  command->callback([flags] { write_weights(*flags); });
}

}  // namespace spillway::cli
