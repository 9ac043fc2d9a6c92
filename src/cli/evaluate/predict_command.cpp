#include "src/cli/evaluate/predict_command.h"

#include <fmt/core.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstddef>
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

#include "prefetch/files/json.h"
#include "src/cli/evaluate/evaluation_flags.h"
#include "src/cli/evaluate/named_files.h"
#include "src/cli/evaluate/predictions.h"
#include "src/cli/flags/number_checks.h"
#include "src/cli/flags/output_path.h"
#include "src/cli/terminal/interrupt.h"
#include "src/io/data/dataset.h"
#include "src/io/data/image_folder.h"
#include "um/error.h"
#include "um/text/wording.h"

namespace spillway::cli {
namespace {

using nlohmann::json;

struct PredictCommandFlags {
  EvaluationFlags common;
  std::vector<std::string> files;  // empty: a data set
  std::size_t count = 10;
  std::size_t top = 1;
  bool has_logits = false;
};

void expect_classes_of_images(const nets::Network& network) {
  if (!network.reads_text() && network.labels() == nets::square(1)) return;
  throw um::Error{"network " + network.name +
                  " does not say of an image which class it is of; predict is for those that do"};
}

// How the training read its files, of which others are read in the same way.
ImageTask image_task(const TrainedNetwork& trained) {
  const Checkpoint& checkpoint = trained.checkpoint.manifest.checkpoint;
  if (!checkpoint.settings.images) {
    throw um::Error{"the network was trained on " + checkpoint.key.data +
                    ", which no files of images are prepared as; predict FILE... is for a training "
                    "on --data images:DIR, and --data names other data"};
  }
  return {.image = trained.network.input(),
          .classes = trained.network.classes(),
          .options = *checkpoint.settings.images};
}

void expect_fitting(const TrainedNetwork& trained, const PredictCommandFlags& flags) {
  expect_classes_of_images(trained.network);
  if (!flags.files.empty()) static_cast<void>(image_task(trained));
}

// One run of the command, from its flags to its last line.
class Predicting {
 public:
  Predicting(const PredictCommandFlags& flags, const Interrupt& interrupt)
      : flags_{flags}, interrupt_{interrupt}, trained_{flags.common.open_network()} {
    expect_fitting(trained_, flags);
    options_ = {.top = flags.top,
                .has_logits = flags.has_logits,
                .class_names = trained_.checkpoint.manifest.checkpoint.class_names};
  }

  void run() {
    if (flags_.files.empty()) {
      of_data_set();
    } else {
      of_files();
    }
  }

 private:
  [[nodiscard]] std::stop_token token() const { return interrupt_.token(); }

  void make_ready_for(const Dataset& data) {
    ProgressLine progress;
    evaluator_ = flags_.common.make_evaluator(trained_, data, progress, token());
  }

  void of_data_set() {
    JudgedData opened = flags_.common.open_data(trained_);
    const std::size_t count = std::min(flags_.count, opened.samples->size());
    const std::unique_ptr<Dataset> data = first_samples(std::move(opened.samples), count);
    make_ready_for(*data);
    judge(*data, [&](const JudgedImage& image) {
      add({{"item", image.index}, {"label", image.label}}, std::to_string(image.index), image,
          fmt::format(" (label {})", image.label));
    });
    tell_broken(opened);
    write(prefetch::as_utf8(data->name()));
  }

  void of_files() {
    JudgedData files{.broken = std::make_shared<BrokenFiles>(OnBroken::kSkip)};
    const std::vector<std::string>& paths = flags_.files;
    files.samples = open_image_files(paths, image_task(trained_), files.broken);
    make_ready_for(*files.samples);
    const auto take = [&](const JudgedImage& image) {
      const std::string& path = paths.at(image.index);
      add({{"file", prefetch::as_utf8(path)}}, path, image, "");
    };
    try {
      judge(*files.samples, take);
    } catch (const um::Error&) {  // also where there is nothing to judge
      tell_broken(files);
      if (!items_.empty() || files.broken->count() == 0) throw;
    }
    tell_broken(files);
    write("files");
    if (items_.size() == paths.size()) return;
    throw um::Error{fmt::format("{} of {} cannot be read as images", paths.size() - items_.size(),
                                um::count_of(paths.size(), "file"))};
  }

  void judge(const Dataset& data, const OnJudged& take) {
    describe(*evaluator_, data);
    static_cast<void>(evaluator_->evaluate(data, {.on_judged = take, .stop = token()}));
  }

  // What is said of an image, in JSON and, with `name` before it and `label` behind it, as text.
  void add(json item, const std::string& name, const JudgedImage& image, const std::string& label) {
    const Prediction prediction{image, options_};
    item.update(prediction.json());
    items_.push_back(std::move(item));
    if (flags_.common.json == "-") return;
    std::fputs(fmt::format("{}: {}{}\n", name, prediction.text(), label).c_str(), stdout);
  }

  void write(const json& data) const {
    if (flags_.common.json.empty()) return;
    prefetch::write_json({{"network", trained_.network.name}, {"data", data}, {"items", items_}},
                         flags_.common.json);
  }

  const PredictCommandFlags& flags_;
  const Interrupt& interrupt_;
  TrainedNetwork trained_;
  std::unique_ptr<Evaluator> evaluator_;
  PredictionOptions options_;
  json items_ = json::array();
};

// Files are one way to say what is judged, a data set is the other.
void expect_files_or_data(const CLI::App& command, const PredictCommandFlags& flags) {
  if (flags.files.empty()) return;
  for (const char* const flag : {"--data", "--split", "--count", "--tokenizer"}) {
    if (command.count(flag) > 0) {
      throw CLI::ValidationError{flag, "is about a data set; leave it out, or the files"};
    }
  }
}

void run_predictions(const CLI::App& command, PredictCommandFlags& flags) {
  expect_files_or_data(command, flags);
  flags.common.memory.expect_effects(command);
  if (flags.has_logits && flags.common.json.empty()) {
    throw CLI::ValidationError{"--logits", "is of --json; give --json FILE"};
  }
  expect_writable(flags.common.json);
  flags.files = named_image_files(flags.files);
  flags.common.most_samples = flags.files.size();
  flags.common.gives_logits = flags.top > 1 || flags.has_logits;
  const Interrupt interrupt;
  Predicting{flags, interrupt}.run();
}

}  // namespace

void add_predict_command(CLI::App& app) {
  CLI::App* const command =
      app.add_subcommand("predict", "Class and probability of image files, or of a data set's");
  const auto flags = std::make_shared<PredictCommandFlags>();  // shared: the callback keeps it
  flags->common.add_to(*command);
  command
      ->add_option("files", flags->files,
                   "Images to look at, JPEG or PNG, or folders of such (default: the first --count "
                   "of a data set)")
      ->type_name("FILE...");
  command->add_option("--count", flags->count, "Images to look at, the first ones of the split")
      ->check(check_whole_number_from_one)
      ->capture_default_str()
      ->group("What is judged");
  command->add_option("--top", flags->top, "Classes to tell of each image, the likeliest ones")
      ->check(check_whole_number_from_one)
      ->capture_default_str()
      ->type_name("K")
      ->group("Output");
  command->add_flag("--logits", flags->has_logits, "Write the logits of each image in --json, too")
      ->group("Output");
  command->footer(
      "Of a training with --ema, the averages of the weights predict, unless --raw-weights is "
      "given.\nExamples: spillway predict run1 cat.jpg photos --top 3\n"
      "          spillway predict run1 --data idx:/data/mnist --count 20");
  command->callback([flags, command] { run_predictions(*command, *flags); });
}

}  // namespace spillway::cli
