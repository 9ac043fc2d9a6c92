#include <fmt/core.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstddef>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <numeric>
#include <span>
#include <stop_token>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "prefetch/files/json.h"
#include "src/cli/commands.h"
#include "src/cli/evaluation_flags.h"
#include "src/cli/flags/flag_values.h"
#include "src/cli/flags/output_path.h"
#include "src/cli/terminal/interrupt.h"
#include "src/io/data/dataset.h"
#include "src/io/data/image_files.h"
#include "src/io/data/image_folder.h"
#include "src/train/evaluation.h"
#include "um/error.h"
#include "um/text/wording.h"

namespace spillway::cli {
namespace {

namespace fs = std::filesystem;

// Returns the image files that a user names, in order: files, and those in and below folders.
// Throws: um::Error when one is missing, is neither file nor folder, or a folder has no image.
std::vector<std::string> named_image_files(const std::vector<std::string>& paths) {
  std::vector<std::string> files;
  for (const std::string& path : paths) {
    std::error_code error;
    const fs::file_status status = fs::status(path, error);
    if (status.type() == fs::file_type::not_found) {
      throw um::system_error("cannot read " + path, ENOENT);
    }
    if (error) throw um::system_error("cannot look at " + path, error.value());
    if (status.type() == fs::file_type::directory) {
      const std::vector<std::string> inside = find_images(path);
      files.insert(files.end(), inside.begin(), inside.end());
    } else if (status.type() == fs::file_type::regular) {
      files.push_back(path);
    } else {
      throw um::Error{"cannot read " + path + ": it is neither a file nor a folder"};
    }
  }
  return files;
}

/// Selects what to print for each image.
struct PredictionOptions {
  std::size_t top = 1;                   ///< classes, the likeliest first
  bool has_logits = false;               ///< in JSON
  std::vector<std::string> class_names;  ///< by number; empty if unknown
};

/// A class and its probability.
struct ClassProbability {
  std::size_t number = 0;
  double probability = 0;
};

/// A network's prediction for an image, as text or JSON. Logits need StepOptions::gives_logits.
class Prediction {
 public:
  /// Without logits, has only the likeliest class.
  Prediction(const JudgedImage& image, const PredictionOptions& options);

  /// Returns "class 3 (cat), probability 0.934; 5 (dog) 0.050".
  [[nodiscard]] std::string text() const;
  /// Returns {"class": 3, "class_name": "cat", "probability": 0.934}, with "top" if there are
  /// several classes, and "logits" if wanted.
  [[nodiscard]] nlohmann::json json() const;

 private:
  [[nodiscard]] std::string name_of(std::size_t number) const;
  [[nodiscard]] nlohmann::json json_of(const ClassProbability& each) const;

  const PredictionOptions& options_;
  std::vector<ClassProbability> classes_;
  std::vector<float> logits_;
};

// Returns the `count` likeliest classes by softmax of `logits`, or all if there are fewer. Equal
// ones are in order of their numbers.
std::vector<ClassProbability> likeliest_classes(std::span<const float> logits, std::size_t count) {
  std::vector<std::size_t> order(logits.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::stable_sort(order, [&](std::size_t a, std::size_t b) {
    // NaNs come last, or the comparison would not be an order.
    if (std::isnan(logits[a]) || std::isnan(logits[b])) return !std::isnan(logits[a]);
    return logits[a] > logits[b];
  });
  std::vector<ClassProbability> classes;
  if (order.empty()) return classes;
  const auto largest = static_cast<double>(logits[order.front()]);
  const double sum =
      std::accumulate(logits.begin(), logits.end(), 0.0, [&](double before, float logit) {
        return before + std::exp(static_cast<double>(logit) - largest);
      });
  order.resize(std::min(count, order.size()));
  for (const std::size_t number : order) {
    const auto logit = static_cast<double>(logits[number]);
    classes.push_back({.number = number, .probability = std::exp(logit - largest) / sum});
  }
  return classes;
}

Prediction::Prediction(const JudgedImage& image, const PredictionOptions& options)
    : options_{options},
      classes_{likeliest_classes(image.logits, options.top)},
      logits_{image.logits.begin(), image.logits.end()} {
  if (!classes_.empty()) return;
  classes_.push_back({.number = static_cast<std::size_t>(image.judged.prediction),
                      .probability = static_cast<double>(image.judged.probability)});
}

// Returns the class number, with the name if there is one.
std::string Prediction::name_of(std::size_t number) const {
  const std::vector<std::string>& names = options_.class_names;
  return number < names.size() ? fmt::format("{} ({})", number, names[number])
                               : std::to_string(number);
}

std::string Prediction::text() const {
  std::string text;
  for (const ClassProbability& each : classes_) {
    text += text.empty() ? fmt::format("class {}, probability", name_of(each.number))
                         : fmt::format("; {}", name_of(each.number));
    text += fmt::format(" {:.3f}", each.probability);
  }
  return text;
}

nlohmann::json Prediction::json_of(const ClassProbability& each) const {
  nlohmann::json object{{"class", each.number}, {"probability", each.probability}};
  const std::vector<std::string>& names = options_.class_names;
  if (each.number < names.size()) object["class_name"] = names[each.number];
  return object;
}

nlohmann::json Prediction::json() const {
  nlohmann::json object = json_of(classes_.front());
  if (options_.top > 1) {
    for (const ClassProbability& each : classes_) object["top"].push_back(json_of(each));
  }
  if (options_.has_logits) object["logits"] = logits_;
  return object;
}

using nlohmann::json;

struct PredictCommandFlags {
  EvaluationFlags common;
  std::vector<std::string> files;  // empty: use a data set
  std::size_t count = 10;
  std::size_t top = 1;
  bool has_logits = false;
};

void expect_classes_of_images(const nets::Network& network) {
  if (!network.reads_text() && network.labels() == nets::square(1)) return;
  throw um::Error{"network " + network.name +
                  " does not say of an image which class it is of; predict is for those that do"};
}

// Returns how the training read its images; other files are read in the same way.
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

// One run of the command.
class Predicting {
 public:
  Predicting(const PredictCommandFlags& flags, const Interrupt& interrupt)
      : flags_{flags}, interrupt_{interrupt}, trained_{flags.common.open_network()} {
    expect_classes_of_images(trained_.network);
    if (!flags.files.empty()) static_cast<void>(image_task(trained_));
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
  void make_ready_for(const Dataset& data) {
    ProgressLine progress;
    evaluator_ = flags_.common.make_evaluator(trained_, data, progress, interrupt_.token());
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
    write(data->name());
  }

  void of_files() {
    JudgedData files{.broken = std::make_shared<BrokenFiles>(OnBroken::kSkip)};
    const std::vector<std::string>& paths = flags_.files;
    files.samples = open_image_files(paths, image_task(trained_), files.broken);
    make_ready_for(*files.samples);
    const auto take = [&](const JudgedImage& image) {
      const std::string& path = paths.at(image.index);
      add({{"file", path}}, path, image, "");
    };
    try {
      judge(*files.samples, take);
    } catch (const um::Error&) {  // also when there are no images
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
    flags_.common.describe(*evaluator_, data);
    static_cast<void>(evaluator_->evaluate(data, {.on_judged = take}));
  }

  // Prints the prediction for an image, between `name` and `label`, and adds it to the JSON.
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

// Throws: CLI::ValidationError when both files and a data set are given.
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
  flags.common.memory.note_idle_flags(command);
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
  const auto flags = std::make_shared<PredictCommandFlags>();  // shared with the callback
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
