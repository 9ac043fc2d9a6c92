#include "src/data/open_dataset.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <string>
#include <utility>

#include "src/data/batch_order.h"
#include "src/data/cifar10.h"
#include "src/data/idx.h"
#include "src/data/prepared_dataset.h"
#include "src/data/synthetic.h"
#include "um/error.h"

namespace spillway {
namespace {

// Close to those of drawn images of any size, seed and number of classes.
ChannelStatistics synthetic_statistics(std::size_t channels) {
  const bool is_grey = channels == 1;
  return {.mean = std::vector<float>(channels, is_grey ? 0.3F : 0.25F),
          .deviation = std::vector<float>(channels, is_grey ? 0.23F : 0.18F)};
}

DatasetPair prepare(DatasetPair stored, const ChannelStatistics& statistics,
                    const DatasetOptions& options) {
  expect_batch(stored.train->size(), options.batch);
  const nets::Shape& image = options.image;
  return {.train = std::make_unique<PreparedDataset>(std::move(stored.train), statistics, image),
          .test = std::make_unique<PreparedDataset>(std::move(stored.test), statistics, image)};
}

// A data set of files, as a user names it. A new one is a row of the table below.
struct FileDataset {
  std::string_view kind;
  std::string_view format;  // of its files
  DatasetPair (*open)(const std::filesystem::path& folder, std::size_t classes);
  ChannelStatistics (*statistics)(const Dataset& train);
};

constexpr std::array kFileDatasets{
    FileDataset{"idx", "files in MNIST's format", open_idx, measure_channels},
    FileDataset{"cifar10", "binary version", open_cifar10, [](const Dataset& /*train*/) {
                  return ChannelStatistics{.mean = {0.4914F, 0.4822F, 0.4465F},
                                           .deviation = {0.2470F, 0.2435F, 0.2616F}};
                }}};

std::string form_of(const FileDataset& row) { return std::string{row.kind} + ":DIR"; }

// "synthetic, idx:DIR and cifar10:DIR"
std::string listed_datasets() {
  std::string text = "synthetic";
  for (const FileDataset& row : kFileDatasets) {
    text += (&row == &kFileDatasets.back() ? " and " : ", ") + form_of(row);
  }
  return text;
}

const FileDataset* find_dataset(std::string_view kind) {
  const auto* const row = std::ranges::find(kFileDatasets, kind, &FileDataset::kind);
  return row == kFileDatasets.end() ? nullptr : row;
}

// "idx:DIR" as "idx" and "DIR".
struct Spec {
  explicit Spec(std::string_view text)
      : kind{text.substr(0, text.find(':'))},
        folder{text.substr(std::min(kind.size() + 1, text.size()))} {}
  std::string kind;
  std::string folder;
};

std::string across(std::size_t height, std::size_t width) {
  return std::to_string(height) + "x" + std::to_string(width);
}

// Of a network that scores positions of an image.
void expect_pixel_labels(std::string_view spec, const DatasetOptions& options) {
  const auto& [height, width] = options.labels;
  if (height != options.image.height || width != options.image.width) {
    throw um::Error{"the network ends with scores for " + across(height, width) +
                    " places of an image of " + across(options.image.height, options.image.width) +
                    "; end it with a linear layer, or with a score for each pixel"};
  }
  if (spec != "synthetic") {
    throw um::Error{"the network scores each pixel, but data set " + std::string{spec} +
                    " has one label for an image; use synthetic"};
  }
}

}  // namespace

std::string dataset_forms() {
  std::string text = "synthetic (generated images)";
  for (const FileDataset& row : kFileDatasets) {
    text += (&row == &kFileDatasets.back() ? " or " : ", ") + form_of(row) + " (" +
            std::string{row.format} + ")";
  }
  return text;
}

void expect_data_set(std::string_view spec) {
  if (spec == "synthetic") return;
  const Spec parts{spec};
  if (find_dataset(parts.kind) == nullptr) {
    throw um::Error{"there is no data set '" + std::string{spec} + "'; there are " +
                    listed_datasets()};
  }
  if (parts.folder.empty()) {
    throw um::Error{"data set " + parts.kind + " needs the folder of its files: " + parts.kind +
                    ":DIR"};
  }
}

DatasetPair open_dataset(std::string_view spec, const DatasetOptions& options) {
  expect_data_set(spec);
  const bool labels_pixels = options.labels != nets::square(1);
  if (labels_pixels) expect_pixel_labels(spec, options);
  if (spec == "synthetic") {
    const auto& make = labels_pixels ? make_synthetic_masks : make_synthetic;
    return prepare(make(options.image, options.classes, options.seed),
                   synthetic_statistics(options.image.channels), options);
  }
  const auto [kind, folder] = Spec{spec};
  const FileDataset& files = *find_dataset(kind);
  DatasetPair stored = files.open(folder, options.classes);
  const ChannelStatistics statistics = files.statistics(*stored.train);
  return prepare(std::move(stored), statistics, options);
}

}  // namespace spillway
