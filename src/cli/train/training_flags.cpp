#include "src/cli/train/training_flags.h"

#include <fmt/core.h>

#include <CLI/CLI.hpp>
#include <array>
#include <string>
#include <utility>

#include "nets/text/network_file.h"
#include "src/cli/flags/device_flags.h"
#include "src/cli/flags/flag_values.h"
#include "src/cli/flags/workload_flags.h"
#include "src/cli/terminal/terminal.h"
#include "src/cli/train/training_report.h"
#include "src/io/data/open_dataset.h"
#include "src/io/onnx/onnx_model.h"
#include "src/train/checkpoint/checkpoint_choice.h"
#include "um/error.h"

namespace spillway::cli {
namespace {

constexpr const char* kAuto = "auto";

// The value is empty for --resume alone.
std::string check_resume(const std::string& text) {
  if (text.empty() || text == "true" || text == "false" || text == kAuto) return {};
  return "'" + text + "' does not say whether to go on; give --resume alone, or --resume auto";
}

std::string check_data_set(const std::string& text) {
  return complaint_of([&] { expect_data_set(text); });
}

}  // namespace

void InitialFlags::add_to(CLI::App& command, const char* group) {
  command
      .add_option("--weights", weights,
                  "Start from the parameters of this safetensors file, or folder of them, named as "
                  "by Hugging Face (GPT-2, Llama, BERT, ViT) or torchvision (ResNet, VGG, "
                  "DenseNet, GoogLeNet, Inception-v3, SqueezeNet, ViT)")
      ->type_name("FILE")
      ->group(group);
  command
      .add_flag("--new-head", has_new_head,
                "Draw the last layer anew where --weights, or the ONNX file of --net, has it for "
                "another number of classes")
      ->group(group);
  add_drawing_to(command, group);
}

void InitialFlags::add_drawing_to(CLI::App& command, const char* group) {
  command
      .add_option_function<std::string>(
          "--init", [this](const std::string& name) { rule = find_initialisation(name).value(); },
          "Rule that weights are drawn by: torchvision (convolutions He by fan-out, linear layers "
          "with deviation 0.01, as its VGG), torchvision-resnet (linear layers uniform), "
          "torchvision-densenet (convolutions He by fan-in, linear layers uniform), pytorch "
          "(uniform, the defaults of its layers) or xavier "
          "(convolutions He by fan-in, linear layers Xavier) (default: torchvision for built-in "
          "networks of photos, xavier for lenet, transformers and network files)")
      ->check(CLI::IsMember(
          {"torchvision", "torchvision-resnet", "torchvision-densenet", "pytorch", "xavier"}))
      ->group(group);
  command
      .add_flag("--zero-gamma", has_zero_gamma,
                "Begin with gamma 0 in the last batch norm of each residual block, so that each "
                "block begins as its shortcut (Goyal et al., 2017)")
      ->excludes("--weights")
      ->group(group);
}

void InitialFlags::expect_fitting(bool goes_on) const {
  if (!weights.empty() && !has_new_head && rule) {
    throw CLI::ValidationError{"--init",
                               "is of weights that are drawn, and --weights has them all"};
  }
  if (!has_new_head || goes_on || !weights.empty()) return;
  throw CLI::ValidationError{"--new-head", "needs --weights FILE, whose last layer it replaces"};
}

Initialisation InitialFlags::rule_for(const std::string& network) const {
  if (rule) return *rule;
  return nets::is_network_file(network) ? Initialisation::kXavier : usual_initialisation(network);
}

TensorSource InitialFlags::values_of(const OpenedNetwork& network, bool goes_on) const {
  if (network.imported == nullptr || !weights.empty() || rule || goes_on) return {};
  if (has_zero_gamma) {
    throw um::Error{"--zero-gamma is for weights that are drawn, but those of " +
                    network.imported->file + " are not; leave it out, or give --init"};
  }
  return onnx_weights(network, has_new_head);
}

void TrainingFlags::add_to(CLI::App& command) {
  workload.add_to(command);
  add_training_to(command);
  images.add_to(command);
  workload.optimizer.add_rates_to(command);
  add_evaluation_to(command);
  add_checkpoint_to(command);
  device.add_to(command);
  memory.add_mode_to(command);
  memory.add_space_to(command);
  memory.add_graph_to(command);
  plan.add_to(command);
  micro_batches.add_to(
      command,
      ". A --budget in percent is relative to the whole batch, or to "
      "the micro-batches of one of several ranks. --resume takes the checkpoint's");
  launcher.add_to(command);
  add_files_to(command);
}

void TrainingFlags::add_training_to(CLI::App& command) {
  command
      .add_option("--data", data,
                  "Data set: " + dataset_forms() +
                      ". Images are resized to the network's input. The last tenth of a text is "
                      "to test on, unless there are two: text:TRAIN,TEST")
      ->check(check_data_set)
      ->capture_default_str()
      ->group(kTrainingHeading);
  command
      .add_option("--tokenizer", tokenizer,
                  "Folder of the byte-pair encoding for --data text:FILE, as GPT-2's: encoder.json "
                  "and vocab.bpe, or vocab.json and merges.txt (default: each byte is a token)")
      ->group(kTrainingHeading);
  initial.add_to(command, kTrainingHeading);
  add_length_to(command);
  learning_rate.add_to(command);
  workload.add_smoothing_to(command, kTrainingHeading);
  command
      .add_option("--seed", train.seed,
                  "Random seed of weights, data order, dropout, synthetic data and masked tokens")
      ->check(check_whole_number)
      ->capture_default_str()
      ->group(kTrainingHeading);
}

void TrainingFlags::add_length_to(CLI::App& command) {
  command.add_option("--steps", train.steps, "Stop after this many steps")
      ->check(check_whole_number)
      ->group(kTrainingHeading);
  command
      .add_option("--epochs", train.epochs,
                  "Stop after this many epochs (default: 1, unless --steps is given)")
      ->check(check_whole_number)
      ->group(kTrainingHeading);
  command
      .add_option("--train-samples", train_samples,
                  "Learn from the first N samples of the data set alone (default: all)")
      ->check(check_whole_number_from_one)
      ->type_name("N")
      ->group(kTrainingHeading);
}

void TrainingFlags::add_evaluation_to(CLI::App& command) {
  command
      .add_option("--eval-every", train.evaluate_every,
                  "Evaluate on the test split every N steps and at the end, 0 for never (default: "
                  "at the end of each epoch)")
      ->check(check_whole_number)
      ->type_name("N")
      ->group(kTrainingHeading);
  command
      .add_option("--early-stop", patience,
                  "End the training after N evaluations in a row that are not better than the best "
                  "one: by accuracy, of texts by loss; 0 for never. --resume counts on")
      ->check(check_whole_number)
      ->type_name("N")
      ->group(kTrainingHeading);
  command
      .add_option(
          "--confusion", confusion,
          "Write how many test images of each label (row) got which prediction (column), in "
          "the last evaluation, as CSV to this file, - for standard output")
      ->type_name("FILE")
      ->group("Output");
}

void TrainingFlags::add_checkpoint_to(CLI::App& command) {
  auto* const folder =
      command.add_option("--checkpoint", checkpoint.folder,
                         "Folder of the checkpoints, written at the end of each epoch and when a "
                         "signal ends the training");
  folder->group(kTrainingHeading);
  command
      .add_option("--checkpoint-every", train.checkpoint_every,
                  "Write the checkpoint every N steps instead")
      ->check(check_whole_number)
      ->needs(folder)
      ->group(kTrainingHeading);
  command.add_option("--keep", checkpoint.keep, "Keep this many checkpoints, the last ones")
      ->check(check_whole_number_from_one)
      ->capture_default_str()
      ->needs(folder)
      ->group(kTrainingHeading);
  command
      .add_flag("--keep-best", checkpoint.keep_best,
                "Keep the checkpoint of the best evaluation, too: by accuracy, of texts by loss")
      ->needs(folder)
      ->group(kTrainingHeading);
  command
      .add_option(
          "--resume", resume,
          "Continue from the newest checkpoint that verifies, with its settings (budget, planner, "
          "far file, memory mode, threads, optimizer, schedule and so on) unless flags change "
          "them. Where the plan was made for another budget, planner, memory mode, machine or "
          "number of threads, there is a new one, with the same algorithms where memory lets it. "
          "auto: the same where there is a checkpoint, whose training --weights and --init began; "
          "else begin")
      ->expected(0, 1)
      ->check(check_resume)
      ->type_name("[auto]")
      ->needs(folder)
      ->group(kTrainingHeading);
}

void TrainingFlags::add_files_to(CLI::App& command) {
  command
      .add_option("--plan", plan_file,
                  "Plan file, written by spillway plan --out; its budget holds unless --budget is "
                  "given")
      ->group(kPlanningHeading);
  command
      .add_option("--profile", profile_file,
                  "Profile of a micro-batch, written by spillway profile, used instead of "
                  "measuring")
      ->group(kPlanningHeading);
  cache.add_to(command);
  command
      .add_flag("--dry-run", is_dry_run,
                "Do all that comes before the first step, say what the training would take and "
                "write, and write nothing")
      ->group("Output");
}

void TrainingFlags::complete(const CLI::App& command) {
  learning_rate.choose_rate(command, workload.optimizer.options(), workload.batch);
  choose_beginning();
  if (checkpoint.resume) restore_settings(command);
  initial.expect_fitting(checkpoint.resume || is_onnx_file(workload.net));
  workload.optimizer.expect_fitting();
  learning_rate.expect_fitting(command);
  has_data = command.count("--data") > 0;
  images.complete(command, data);
  choose_classes(command);
  expect_effects();
  train.learning_rate = learning_rate.options;
  train.has_confusion = !confusion.empty();
  train.loader_threads = images.loader_threads();
  train.mixing = images.mixing;
}

void TrainingFlags::choose_beginning() {
  if (resume == kAuto) {
    checkpoint.resume = holds_checkpoint(checkpoint.folder);
  } else if (resume != "false") {
    checkpoint.resume = true;
    if (!initial.weights.empty()) throw CLI::ExcludesError{"--weights", "--resume"};
  }
  if (checkpoint.resume) initial = {};  // the checkpoint's weights replace these
}

void TrainingFlags::expect_effects() const {
  if (train.evaluate_every != 0) return;
  const std::array uses{std::pair{"--keep-best", checkpoint.keep_best},
                        std::pair{"--early-stop", patience > 0},
                        std::pair{"--confusion", !confusion.empty()}};
  for (const auto& [flag, is_wanted] : uses) {
    if (!is_wanted) continue;
    throw CLI::ValidationError{flag, "is of evaluations, which --eval-every 0 turns off"};
  }
}

TrainerOptions TrainingFlags::trainer(const std::string& arguments) const {
  const OpenedNetwork opened = open_named_network(workload.net);
  nets::Network network = workload.network(opened.entry);
  if (!confusion.empty()) expect_confusion_matrix_of(network);
  MemoryOptions near = memory.options();
  near.budget = plan.budget;
  return {.network = std::move(network),
          .data = data,
          .tokenizer = tokenizer,
          .images = images.options,
          .train_samples = train_samples,
          .patience = patience,
          .step = workload.step(),
          .memory = std::move(near),
          .planning = planning(),
          .training = train,
          .initial = {.rule = initial.rule_for(workload.net),
                      .has_zero_gamma = initial.has_zero_gamma,
                      .weights = initial.weights,
                      .has_new_head = initial.has_new_head,
                      .values = initial.values_of(opened, checkpoint.resume)},
          .checkpoint = written_checkpoint(),
          .ranks = launcher.options(arguments, device.device,
                                    !micro_batches.leaves_whole(workload.batch))};
}

CheckpointOptions TrainingFlags::written_checkpoint() const {
  CheckpointOptions written = checkpoint;
  written.only_looks = is_dry_run;
  if (is_dry_run && !checkpoint.resume) written.folder.clear();
  return written;
}

PlanningOptions TrainingFlags::planning() const {
  return {.planner = plan.planner,
          .may_recompute = plan.recompute == "auto",
          .state = plan.state_rule(memory.planned_mode()),
          .update = plan.update_rule(memory.planned_mode()),
          .micro_batches = micro_batches,
          .plan_file = plan_file,
          .times = TimesOptions{
              .file = profile_file, .cache = cache.folder(), .adds_to_cache = !is_dry_run}};
}

// Takes the number of classes from a folder of images if the network does not define it.
void TrainingFlags::choose_classes(const CLI::App& command) {
  if (command.count("--classes") > 0 || nets::is_network_file(workload.net)) return;
  if (reads_text(nets::open_network(workload.net))) return;
  if (const auto classes = classes_of(data)) workload.sizes.classes = *classes;
}

void TrainingFlags::restore_settings(const CLI::App& command) {
  const KeptSettings kept = read_settings(checkpoint.folder);
  learning_rate.restore(command, kept.learning_rate);
  if (kept.images) images.restore(command, *kept.images);
  workload.optimizer.restore(command, kept.optimizer);
  if (command.count("--threads") == 0) device.threads = static_cast<int>(kept.threads);
  if (command.count("--precision") == 0) device.precision = to_string(kept.precision);
  if (command.count("--deterministic") == 0) device.deterministic = kept.deterministic;
  restore_micro_batches(kept.micro_batch_size);
  restore_dropout(kept.dropout);
  restore_state(command, kept);
  restore_evaluations(command, kept.evaluations);
  if (kept.planning) restore_planning(command, *kept.planning);
}

void TrainingFlags::restore_planning(const CLI::App& command, const KeptPlanning& kept) {
  if (!plan_file.empty()) return;  // the file says how it is planned
  const auto keep = [&](const char* flag, std::string& given, const std::string& of_checkpoint) {
    if (command.count(flag) == 0) given = of_checkpoint;
  };
  keep("--planner", plan.planner, kept.planner);
  keep("--recompute", plan.recompute, kept.may_recompute ? "auto" : "off");
  keep("--state", plan.state, kept.state);
  keep("--update", plan.update, kept.update);
  keep("--memory", memory.memory, kept.memory);
  // A budget for moves is not one for a run without any.
  const bool stays_resident = kept.mode == "resident";
  if (memory.memory != "resident" || stays_resident) keep("--budget", plan.budget, kept.budget);
  if (command.count("--far") == 0 && kept.device.starts_with("host")) {
    kept_far_folder = kept.far_folder;
  }
}

void TrainingFlags::restore_far_folder() {
  if (kept_far_folder.empty() || memory.planned_mode() == MemoryMode::kResident) return;
  if (is_host(device.device)) return memory.restore_far_folder(kept_far_folder);
  tell(
      "note: the checkpoint's far memory was a file in {}; that of a GPU is RAM, unless --memory "
      "copy --far file:DIR is given\n",
      kept_far_folder);
}

// Restores flags that are part of the state, or exclude parts of it; these cannot change.
void TrainingFlags::restore_state(const CLI::App& command, const KeptSettings& kept) {
  const auto keep = [&](const char* flag, auto& given, const auto& of_checkpoint) {
    if (command.count(flag) > 0 && given != of_checkpoint) {
      throw um::Error{"the checkpoint in " + checkpoint.folder + " is of a training with another " +
                      flag + ", or none, which cannot change; leave out " + flag};
    }
    given = of_checkpoint;
  };
  keep("--mixup", images.mixing.mixup, kept.mixing.mixup);
  keep("--cutmix", images.mixing.cutmix, kept.mixing.cutmix);
  keep("--ema", workload.average_decay, kept.average_decay);
  keep("--freeze", workload.frozen, kept.frozen);
  if (kept.train_samples > 0) {
    keep("--train-samples", train_samples, std::size_t{kept.train_samples});
  }
  if (command.count("--label-smoothing") == 0) workload.label_smoothing = kept.label_smoothing;
}

void TrainingFlags::restore_evaluations(const CLI::App& command, const EvaluationRule& kept) {
  if (command.count("--eval-every") == 0) train.evaluate_every = kept.every;
  const bool evaluates = train.evaluate_every != 0;
  if (command.count("--early-stop") == 0) patience = evaluates ? kept.patience : 0;
  if (command.count("--keep-best") == 0) checkpoint.keep_best = evaluates && kept.keeps_best;
}

void TrainingFlags::restore_dropout(std::optional<float> kept) {
  // A file has its own dropout, which may have changed since.
  if (!kept || nets::is_network_file(workload.net)) return;
  if (workload.dropout.value_or(*kept) != *kept) {
    throw um::Error{"the checkpoint in " + checkpoint.folder + " is of a training with --dropout " +
                    fmt::format("{}", *kept) + ", which cannot change; leave out --dropout"};
  }
  workload.dropout = kept;
}

void TrainingFlags::restore_micro_batches(std::optional<std::size_t> kept) {
  const std::size_t size = kept.value_or(workload.batch);
  const auto found = [&] { return prefetch::cut(workload.batch, size); };
  if (micro_batches.is_given() && micro_batches.resolve(workload.batch, found).size != size) {
    throw um::Error{"the checkpoint in " + checkpoint.folder + " is of a training with " +
                    (kept ? "--micro-batch-size " + std::to_string(size) : "whole batches") +
                    ", which cannot change; leave out --micro-batches and --micro-batch-size"};
  }
  static_cast<MicroBatchChoice&>(micro_batches) = {.size = size};
}

}  // namespace spillway::cli
