#include <fmt/core.h>

#include <CLI/CLI.hpp>
#include <cmath>
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>

#include "prefetch/files/json.h"
#include "src/cli/commands.h"
#include "src/cli/evaluation_flags.h"
#include "src/cli/flags/output_path.h"
#include "src/cli/terminal/interrupt.h"
#include "src/cli/terminal/terminal.h"
#include "src/cli/train/training_report.h"
#include "um/error.h"

namespace spillway::cli {
namespace {

using nlohmann::json;

struct EvaluateCommandFlags {
  EvaluationFlags common;
  std::string confusion;
};

json to_json(const Evaluator& evaluator, const Dataset& data, const Evaluation& evaluation) {
  const Checkpoint& checkpoint = evaluator.trained().checkpoint.manifest.checkpoint;
  json result{
      {"network", evaluator.trained().network.name},
      {"step", checkpoint.step},
      {"averaged", checkpoint.settings.average_decay > 0 && !evaluator.trained().uses_weights},
      {"data", data.name()},
      {"samples", data.size()},
      {"loss", evaluation.loss},
      {"accuracy", evaluation.accuracy},
      {"budget_bytes", evaluator.plans().budget.count()},
      {"near_peak_bytes", evaluator.session().near_peak().count()},
      {"backend", evaluator.context().backend->description()}};
  if (evaluation.top5) result["top5"] = *evaluation.top5;
  if (evaluator.trained().network.reads_text()) result["perplexity"] = perplexity_of(evaluation);
  return result;
}

std::string sentence_of(const Evaluator& evaluator, const Evaluation& evaluation) {
  std::string text =
      fmt::format("loss {:.4f}, accuracy {:.2f} %", evaluation.loss, 100 * evaluation.accuracy);
  if (evaluation.top5) text += fmt::format(", top-5 {:.2f} %", 100 * *evaluation.top5);
  if (evaluator.trained().network.reads_text()) {
    text += fmt::format(", perplexity {:.2f}", perplexity_of(evaluation));
  }
  return text + "\n";
}

void run_evaluation(const EvaluateCommandFlags& flags) {
  expect_one_standard_output({{"--json", flags.common.json}, {"--confusion", flags.confusion}});
  expect_writable(flags.common.json);
  expect_writable(flags.confusion);
  const Interrupt interrupt;
  ProgressLine progress;
  TrainedNetwork trained = flags.common.open_network();
  if (!flags.confusion.empty()) expect_confusion_matrix_of(trained.network);
  const auto on_looking = [&](double fraction) {
    progress.show_part("looking at the files of the data", fraction);
  };
  const JudgedData judged = flags.common.open_data(
      trained, LookOptions{.on_progress = on_looking, .stop = interrupt.token()});
  const Dataset& data = *judged.samples;
  const std::vector<std::string> class_names = trained.checkpoint.manifest.checkpoint.class_names;
  const auto evaluator =
      flags.common.make_evaluator(std::move(trained), data, progress, interrupt.token());
  flags.common.describe(*evaluator, data);
  const Evaluation evaluation =
      evaluator->evaluate(data, {.has_confusion = !flags.confusion.empty()});
  tell_broken(judged);
  if (!std::isfinite(evaluation.loss)) tell("warning: {}\n", kDivergedEvaluation);
  const bool prints = flags.common.json != "-" && flags.confusion != "-";
  if (prints) std::fputs(sentence_of(*evaluator, evaluation).c_str(), stdout);
  if (!flags.common.json.empty()) {
    prefetch::write_json(to_json(*evaluator, data, evaluation), flags.common.json);
  }
  if (flags.confusion.empty()) return;
  write_confusion_matrix(evaluation.confusion, class_names, flags.confusion);
}

}  // namespace

void add_evaluate_command(CLI::App& app) {
  CLI::App* const command =
      app.add_subcommand("evaluate", "Loss and accuracy of a trained network on a data set");
  const auto flags = std::make_shared<EvaluateCommandFlags>();  // shared with the callback
  flags->common.add_to(*command);
  command
      ->add_option("--confusion", flags->confusion,
                   "Write how many images of each label (row) got which prediction (column) as CSV "
                   "to this file, - for standard output")
      ->type_name("FILE")
      ->group("Output");
  command->footer(
      "Of a training with --ema, the averages of the weights are evaluated, unless "
      "--raw-weights is given.\n"
      "Example: spillway evaluate run1 --data idx:/data/mnist --budget 40% --json -");
  command->callback([flags, command] {
    flags->common.memory.note_idle_flags(*command);
    run_evaluation(*flags);
  });
}

}  // namespace spillway::cli
