#include "src/data/open_dataset.h"

#include <algorithm>
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

// Of CIFAR-10's training images.
ChannelStatistics cifar10_statistics() {
  return {.mean = {0.4914F, 0.4822F, 0.4465F}, .deviation = {0.2470F, 0.2435F, 0.2616F}};
}

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

constexpr std::string_view kIdx = "idx";
constexpr std::string_view kCifar10 = "cifar10";

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

void expect_data_set(std::string_view spec) {
  if (spec == "synthetic") return;
  const Spec parts{spec};
  if (parts.kind != kIdx && parts.kind != kCifar10) {
    throw um::Error{"there is no data set '" + std::string{spec} +
                    "'; there are synthetic, idx:DIR and cifar10:DIR"};
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
  if (kind == kCifar10) {
    return prepare(open_cifar10(folder, options.classes), cifar10_statistics(), options);
  }
  DatasetPair idx = open_idx(folder, options.classes);
  const ChannelStatistics statistics = measure_channels(*idx.train);
  return prepare(std::move(idx), statistics, options);
}

}  // namespace spillway
