#include "src/cli/train/image_flags.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <array>
#include <map>

#include "src/cli/flags/flag_values.h"
#include "src/io/data/open_dataset.h"

namespace spillway::cli {
namespace {

constexpr const char* kGroup = "Images (--data images:DIR)";
constexpr std::size_t kMostThreads = 256;

const std::map<std::string, OnBroken> kOnBroken{{"stop", OnBroken::kStop},
                                                {"skip", OnBroken::kSkip}};

// Returns a fraction for "10%".
double percentage(const std::string& text) { return std::stod(text) / 100; }

std::string check_percentage(const std::string& text) {
  const bool is_one = text.ends_with('%') && text.size() > 1;
  const std::string complaint = is_one ? check_above_zero(text.substr(0, text.size() - 1)) : "x";
  if (complaint.empty() && !kValidationRange.is_too_large(percentage(text))) return {};
  return text + " is no percentage between 0% and 100%, such as 10%";
}

std::string check_threads(const std::string& text) {
  if (text == "auto") return {};
  std::string complaint = check_whole_number_from_one(text);
  if (!complaint.empty()) return complaint + ", nor auto";
  return text.size() > 3 || std::stoul(text) > kMostThreads
             ? text + " is more than " + std::to_string(kMostThreads)
             : complaint;
}

// Flags that change one property of --augment.
constexpr std::array kChanges{
    std::pair{"--crop-area", &Augmentation::least_area}, std::pair{"--flip", &Augmentation::flip},
    std::pair{"--color-jitter", &Augmentation::color_jitter},
    std::pair{"--hue", &Augmentation::hue}, std::pair{"--erase", &Augmentation::erase}};

}  // namespace

void ImageFlags::add_to(CLI::App& command) {
  command
      .add_option(
          "--loader-threads", threads,
          "Threads that read, decode and augment batches ahead of the step, of any data "
          "set: N, or auto, one for each processor, at most 16. Two batches are held ahead; "
          "results do not depend on it")
      ->check(check_threads)
      ->capture_default_str()
      ->group(kTrainingHeading);
  add_mixing_to(command);
  add_augmentation_to(command);
  command
      .add_option("--eval-crop", options.eval_crop,
                  "Part of the shorter side, from 0.01 up, that an evaluation sees, in the middle "
                  "(default: 0.875, as 224 of 256; 1 for networks of images below 64x64)")
      ->check(within(kEvalCropRange))
      ->group(kGroup);
  command
      .add_option_function<std::string>(
          "--validation",
          [this](const std::string& text) { options.validation = percentage(text); },
          "Part of each class's images to test on, drawn by --seed, where there is no folder val "
          "(default: 10%)")
      ->check(check_percentage)
      ->type_name("N%")
      ->group(kGroup);
  command
      .add_option_function<std::string>(
          "--on-broken",
          [this](const std::string& name) { options.on_broken = kOnBroken.at(name); },
          "What to do with a file that cannot be decoded: stop the training, or skip it, saying so "
          "once; its label then counts for nothing (default: stop)")
      ->check(CLI::IsMember({"stop", "skip"}))
      ->group(kGroup);
}

void ImageFlags::add_augmentation_to(CLI::App& command) {
  command
      .add_option(
          "--augment", augment,
          "How images to learn from change: standard (random resized crop of 8 to 100 % of the "
          "area, horizontal flip), strong (also color jitter 0.4, and random erasing of one image "
          "in ten) or none (the middle, as an evaluation sees it) (default: standard)")
      ->check(CLI::IsMember({"none", "standard", "strong"}))
      ->group(kGroup);
  const auto add = [&](std::size_t i, const char* help, const auto& check) {
    command.add_option(kChanges.at(i).first, changes.at(i), help)->check(check)->group(kGroup);
  };
  add(0, "The smallest part of the area that a random resized crop takes; 0: no random crop",
      within(kAugmentationRange));
  add(1, "Probability of a horizontal flip", within(kAugmentationRange));
  add(2, "Part by which brightness, contrast and saturation change at most",
      within(kAugmentationRange));
  add(3, "Part of the circle of colors by which the hue turns at most, 0 to 0.5 (default: 0)",
      within(kHueRange));
  add(4, "Probability that a random rectangle of the image is erased", within(kAugmentationRange));
}

void ImageFlags::add_mixing_to(CLI::App& command) {
  const auto add = [&](const char* flag, float& alpha, const char* help) {
    command.add_option(flag, alpha, help)
        ->check(within(kMixAlphaRange))
        ->type_name("A")
        ->group(kTrainingHeading);
  };
  add("--mixup", mixing.mixup,
      "Blend each image to learn from with the one before it in the batch, and their labels, by a "
      "part drawn for each batch from Beta(A, A); 0.2 is usual. Images of any data set; a "
      "checkpoint keeps it (default: 0, none)");
  add("--cutmix", mixing.cutmix,
      "Put a rectangle of the one before it into each image, of about a part of the area drawn "
      "from Beta(A, A), and mix their labels by it; 1 is usual. With --mixup, each batch gets one "
      "of the two (default: 0, none)");
}

void ImageFlags::restore(const CLI::App& command, const ImageOptions& kept) {
  options.augmentation = kept.augmentation;
  if (command.count("--eval-crop") == 0) options.eval_crop = kept.eval_crop;
  if (command.count("--validation") == 0) options.validation = kept.validation;
  if (command.count("--on-broken") == 0) options.on_broken = kept.on_broken;
}

void ImageFlags::complete(const CLI::App& command, const std::string& data) {
  if (!augment.empty()) options.augmentation = find_augmentation(augment).value();
  for (std::size_t i = 0; i < changes.size(); ++i) {
    if (changes.at(i)) options.augmentation.*kChanges.at(i).second = *changes.at(i);
  }
  if (is_image_folder(data)) return;
  for (const char* const flag : {"--augment", "--crop-area", "--flip", "--color-jitter", "--hue",
                                 "--erase", "--eval-crop", "--validation", "--on-broken"}) {
    if (command.count(flag) > 0) throw CLI::ValidationError{flag, "is for --data images:DIR"};
  }
}

std::size_t ImageFlags::loader_threads() const {
  return threads == "auto" ? 0 : std::stoul(threads);
}

}  // namespace spillway::cli
