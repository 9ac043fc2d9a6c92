#include "src/cli/evaluation_flags.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <utility>

#include "src/cli/flags/flag_values.h"
#include "src/cli/plan_figures.h"
#include "src/cli/terminal/terminal.h"
#include "src/io/data/open_dataset.h"
#include "um/text/wording.h"

namespace spillway::cli {
namespace {

constexpr const char* kData = "What is judged";

std::string check_judged_data(const std::string& text) {
  return complaint_of([&] { expect_data_set(text); });
}

}  // namespace

void EvaluationFlags::add_to(CLI::App& command) {
  command
      .add_option("checkpoint", checkpoint,
                  "Folder of train --checkpoint; the newest checkpoint there that verifies is used")
      ->required()
      ->type_name("DIR");
  add_data_to(command);
  device.add_running_to(command);
  memory.add_mode_to(command);
  memory.add_space_to(command);
  plan.add_to(command);
  cache.add_to(command);
  command
      .add_option(
          "--json", json,
          "Write the result as JSON to this file, - for standard output instead of the text")
      ->group("Output");
}

void EvaluationFlags::add_data_to(CLI::App& command) {
  command
      .add_flag("--best", is_best,
                "Use the checkpoint of the best evaluation, of train --keep-best")
      ->group(kData);
  command
      .add_flag("--raw-weights", uses_weights,
                "Of a training with --ema, use the weights instead of their averages")
      ->group(kData);
  command
      .add_option("--data", data,
                  "Data set: " + dataset_forms() + " (default: that of the training)")
      ->check(check_judged_data)
      ->group(kData);
  command.add_option("--split", split, "Split of the data set: test or train")
      ->check(CLI::IsMember({"test", "train"}))
      ->capture_default_str()
      ->group(kData);
  command
      .add_option("--tokenizer", tokenizer,
                  "Folder of the byte-pair encoding for --data text:FILE (default: bytes)")
      ->group(kData);
  command.add_option("--batch", batch, "Batch size (default: that of the training)")
      ->check(whole_number(kBatchRange.least, kBatchRange.most))
      ->group(kData);
}

TrainedNetwork EvaluationFlags::open_network() const {
  TrainedNetwork trained = open_trained_network(checkpoint, is_best);
  trained.uses_weights = uses_weights;
  for (const std::string& problem : trained.checkpoint.passed_over) {
    tell("warning: {}; using the checkpoint of step {}\n", problem,
         trained.checkpoint.manifest.checkpoint.step);
  }
  return trained;
}

TrainerOptions EvaluationFlags::options_for(const TrainedNetwork& trained) const {
  const CheckpointKey& key = trained.checkpoint.manifest.checkpoint.key;
  std::size_t samples = batch > 0 ? batch : key.batch;
  if (most_samples > 0) samples = std::min(samples, most_samples);
  TrainerOptions options{
      .network = trained.network,
      .tokenizer = tokenizer,
      .step = StepOptions{.batch = samples, .gives_logits = gives_logits},
      .memory = memory.options(),
      .planning = PlanningOptions{.planner = plan.planner,
                                  .may_recompute = plan.recompute == "auto",
                                  .state = plan.state_rule(memory.planned_mode()),
                                  .update = plan.update_rule(memory.planned_mode()),
                                  .times = TimesOptions{.cache = cache.folder()}},
      .training = {.seed = key.seed}};
  options.memory.budget = plan.budget;
  const auto& images = trained.checkpoint.manifest.checkpoint.settings.images;
  if (images) options.images = *images;
  options.images.augmentation = {};  // no augmentation, even for the train split
  return options;
}

std::unique_ptr<Evaluator> EvaluationFlags::make_evaluator(TrainedNetwork trained,
                                                           const Dataset& samples,
                                                           ProgressLine& progress,
                                                           std::stop_token stop) const {
  TrainerOptions options = options_for(trained);
  options.step.has_byte_images = samples.as_bytes() != nullptr;
  TrainerEvents events{
      .on_measuring = [&progress](double part) { progress.show_part("measuring tasks", part); }};
  memory.expect_far();
  auto evaluator = std::make_unique<Evaluator>(
      device.open(), std::move(trained), std::move(options), std::move(events), std::move(stop));
  progress.end();
  return evaluator;
}

JudgedData EvaluationFlags::open_data(const TrainedNetwork& trained,
                                      const std::optional<LookOptions>& look) const {
  const Checkpoint& of_training = trained.checkpoint.manifest.checkpoint;
  const std::string& spec = data.empty() ? of_training.key.data : data;
  DatasetPair pair = open_dataset(spec, dataset_options(options_for(trained), /*batch=*/1));
  const std::vector<std::string>& names = of_training.class_names;
  if (!names.empty() && !pair.class_names.empty() && pair.class_names != names) {
    throw um::Error{fmt::format(
        "the classes of {}, {}, are not those of the training, {}: labels would mean something "
        "else",
        spec, fmt::join(pair.class_names, ", "), fmt::join(names, ", "))};
  }
  const bool is_test = split == "test";
  if (look) expect_whole_files(pair, {.train = !is_test, .test = is_test}, *look);
  return {.samples = is_test ? std::move(pair.test) : std::move(pair.train),
          .broken = std::move(pair.broken)};
}

void tell_broken(const JudgedData& data) {
  if (!data.broken) return;
  for (const std::string& sentence : data.broken->take_new()) {
    tell("warning: {}; it is not judged\n", sentence);
  }
}

void EvaluationFlags::describe(const Evaluator& evaluator, const Dataset& samples) const {
  tell("{} of step {} on {}, {}\n", evaluator.trained().network.name,
       evaluator.trained().checkpoint.manifest.checkpoint.step, samples.name(),
       um::count_of(samples.size(), "sample"));
  tell(
      "{}; {}; budget {} ({})\n", evaluator.context().backend->description(),
      evaluator.session().memory_description(), um::to_string(evaluator.plans().budget),
      describe_need(evaluator.steps().need(), evaluator.steps().memory() == MemoryMode::kResident));
  if (evaluator.steps().has_spilled()) {
    tell("far memory is in a file, as RAM has no room for near and far memory\n");
  }
  tell("{}", describe_kept_times(evaluator.steps().kept_since(), cache.folder()));
}

}  // namespace spillway::cli
