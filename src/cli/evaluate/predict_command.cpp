#include "src/cli/evaluate/predict_command.h"

#include <fmt/core.h>

#include <CLI/CLI.hpp>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "prefetch/files/json.h"
#include "src/cli/evaluate/evaluation_flags.h"
#include "src/cli/flags/number_checks.h"
#include "src/cli/flags/output_path.h"
#include "src/cli/terminal/interrupt.h"
#include "src/data/first_samples.h"
#include "um/error.h"

namespace spillway::cli {
namespace {

using nlohmann::json;

struct PredictCommandFlags {
  EvaluationFlags common;
  std::size_t count = 10;
};

// Its number, and its name where it has one.
std::string class_of(std::size_t number, const std::vector<std::string>& names) {
  return number < names.size() ? fmt::format("{} ({})", number, names[number])
                               : std::to_string(number);
}

void run_predictions(const PredictCommandFlags& flags) {
  expect_writable(flags.common.json);
  const Interrupt interrupt;
  ProgressLine progress;
  const auto evaluator = flags.common.open(progress, interrupt.token());
  const nets::Network& network = evaluator->trained().network;
  if (network.reads_text() || network.labels() != nets::square(1)) {
    throw um::Error{"network " + network.name +
                    " does not say of an image which class it is of; predict is for those that do"};
  }
  JudgedData opened = flags.common.open_data(*evaluator);
  const std::size_t count = std::min(flags.count, opened.samples->size());
  const std::unique_ptr<Dataset> data = first_samples(std::move(opened.samples), count);
  describe(*evaluator, *data);
  const bool prints = flags.common.json != "-";
  const std::vector<std::string>& names =
      evaluator->trained().checkpoint.manifest.checkpoint.class_names;
  json lines = json::array();
  const auto take = [&](std::size_t index, std::int32_t label, const JudgedSample& judged) {
    const auto prediction = static_cast<std::size_t>(judged.prediction);
    lines.push_back({{"item", index},
                     {"label", label},
                     {"class", prediction},
                     {"probability", judged.probability}});
    if (prediction < names.size()) lines.back()["class_name"] = names[prediction];
    if (prints) {
      std::fputs(fmt::format("{}: class {}, probability {:.3f} (label {})\n", index,
                             class_of(prediction, names), judged.probability, label)
                     .c_str(),
                 stdout);
    }
  };
  static_cast<void>(evaluator->evaluate(*data, {.on_judged = take, .stop = interrupt.token()}));
  tell_broken(opened);
  if (!flags.common.json.empty()) {
    prefetch::write_json({{"network", network.name}, {"data", data->name()}, {"items", lines}},
                         flags.common.json);
  }
}

}  // namespace

void add_predict_command(CLI::App& app) {
  CLI::App* const command =
      app.add_subcommand("predict", "Class and probability of each image of a data set");
  const auto flags = std::make_shared<PredictCommandFlags>();  // shared: the callback keeps it
  flags->common.add_to(*command);
  command->add_option("--count", flags->count, "Images to look at, the first ones of the split")
      ->check(check_whole_number_from_one)
      ->capture_default_str()
      ->group("What is judged");
  command->footer(
      "Of a training with --ema, the averages of the weights predict.\n"
      "Example: spillway predict run1 --data idx:/data/mnist --count 20");
  command->callback([flags] { run_predictions(*flags); });
}

}  // namespace spillway::cli
