#include "src/io/data/open_dataset.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>
#include <functional>
#include <memory>
#include <string>
#include <system_error>
#include <utility>

#include "src/io/data/batch_loader.h"
#include "src/io/data/prepared_dataset.h"
#include "src/io/data/synthetic.h"
#include "src/io/data/token_dataset.h"
#include "src/io/text/byte_pair_encoder.h"
#include "src/io/text/text_codec.h"
#include "src/io/text/token_file.h"
#include "src/ops/narrow_floats.h"
#include "um/error.h"

namespace spillway {
namespace {

using OpenFile = std::function<std::unique_ptr<TokenSequence>(const std::filesystem::path&)>;

// Opens one file or two, "TRAIN,TEST". A single existing file may have a comma in its name.
DatasetPair open_files(std::string_view files, const OpenFile& open, const TokenTask& task) {
  const auto open_checked = [&](std::string_view path) {
    std::unique_ptr<TokenSequence> text = open(path);
    expect_in_vocabulary(*text, task.vocabulary);
    return text;
  };
  const std::size_t comma = files.find(',');
  std::error_code ignored;
  if (comma == files.npos || std::filesystem::exists(files, ignored)) {
    return cut_windows(open_checked(files), task);
  }
  auto train = open_checked(files.substr(0, comma));
  return cut_windows(std::move(train), open_checked(files.substr(comma + 1)), task);
}

// Throws: um::Error unless the vocabulary has room for `tokens` tokens, and a mask after them if
// needed.
void expect_vocabulary(const TokenTask& task, std::size_t tokens, const std::string& what) {
  const bool has_mask = task.objective == Objective::kMaskedTokens;
  const std::size_t needed = tokens + (has_mask ? 1 : 0);
  if (task.vocabulary >= needed) return;
  throw um::Error{what + " has " + std::to_string(tokens) + " tokens" +
                  (has_mask ? ", and the network needs one more for the mask" : "") +
                  ", but its vocabulary is " + std::to_string(task.vocabulary) +
                  "; use --vocabulary " + std::to_string(needed) + " or more"};
}

constexpr std::string_view kSynthetic = "synthetic";

DatasetPair prepare(DatasetPair stored, const ChannelStatistics& statistics,
                    const DatasetOptions& options) {
  expect_batch(stored.train->size(), options.batch);
  const nets::Shape& image = options.image;
  return {.train = std::make_unique<PreparedDataset>(std::move(stored.train), statistics, image),
          .test = std::make_unique<PreparedDataset>(std::move(stored.test), statistics, image)};
}

enum class Content { kImages, kText };

// A data set of files, by the name that a user types. A new one is a row of the table below.
struct FileDataset {
  std::string_view kind;
  std::string_view place;   // of its files
  std::string_view format;  // of these files
  Content content;
  DatasetPair (*open)(const std::string& place, const DatasetOptions& options);
};

// Returns the task for tokens that are numbers or random, with the usual mask.
TokenTask token_task(const DatasetOptions& options) {
  return {.length = options.image.height,
          .vocabulary = options.classes,
          .objective = options.objective,
          .seed = options.seed,
          .mask = mask_of(options.classes)};
}

DatasetPair open_standardised_idx(const std::string& place, const DatasetOptions& options) {
  DatasetPair stored = open_idx(place, options.classes);
  const ChannelStatistics statistics = measure_channels(*stored.train);
  return prepare(std::move(stored), statistics, options);
}

DatasetPair open_standardised_cifar10(const std::string& place, const DatasetOptions& options) {
  return prepare(open_cifar10(place, options.classes),
                 {.mean = {0.4914F, 0.4822F, 0.4465F}, .deviation = {0.2470F, 0.2435F, 0.2616F}},
                 options);
}

DatasetPair open_images(const std::string& place, const DatasetOptions& options) {
  DatasetPair data = open_image_folder(place, {.image = options.image,
                                               .classes = options.classes,
                                               .seed = options.seed,
                                               .options = options.images});
  expect_batch(data.train->size(), options.batch);
  return data;
}

constexpr std::string_view kImages = "images";

constexpr std::array kFileDatasets{
    FileDataset{kImages, "DIR", "folders of JPEG and PNG files, one a class", Content::kImages,
                open_images},
    FileDataset{"idx", "DIR", "files in MNIST's format", Content::kImages, open_standardised_idx},
    FileDataset{"cifar10", "DIR", "binary version", Content::kImages, open_standardised_cifar10},
    FileDataset{"text", "FILE", "any text", Content::kText,
                [](const std::string& place, const DatasetOptions& options) {
                  return open_text(place, options.tokenizer, token_task(options));
                }},
    FileDataset{"tokens", "FILE", "token numbers, as llm.c's or nanoGPT's .bin files",
                Content::kText, [](const std::string& place, const DatasetOptions& options) {
                  return open_tokens(place, token_task(options));
                }}};

std::string form_of(const FileDataset& row) {
  return std::string{row.kind} + ":" + std::string{row.place};
}

// Returns "synthetic, images:DIR, idx:DIR and cifar10:DIR".
std::string listed_datasets() {
  std::string text{kSynthetic};
  for (const FileDataset& row : kFileDatasets) {
    text += (&row == &kFileDatasets.back() ? " and " : ", ") + form_of(row);
  }
  return text;
}

const FileDataset* find_dataset(std::string_view kind) {
  const auto* const row = std::ranges::find(kFileDatasets, kind, &FileDataset::kind);
  return row == kFileDatasets.end() ? nullptr : row;
}

// Splits "idx:DIR" into "idx" and "DIR".
struct Spec {
  explicit Spec(std::string_view text)
      : kind{text.substr(0, text.find(':'))},
        place{text.substr(std::min(kind.size() + 1, text.size()))} {}
  std::string kind;
  std::string place;
};

std::string across(std::size_t height, std::size_t width) {
  return std::to_string(height) + "x" + std::to_string(width);
}

bool reads_text(const DatasetOptions& options) { return options.image.form == nets::Form::kTokens; }

// Checks a network that scores positions of an image.
void expect_pixel_labels(std::string_view spec, const DatasetOptions& options) {
  const auto& [height, width] = options.labels;
  if (height != options.image.height || width != options.image.width) {
    throw um::Error{"the network ends with scores for " + across(height, width) +
                    " places of an image of " + across(options.image.height, options.image.width) +
                    "; end it with a linear layer, or with a score for each pixel"};
  }
  if (spec != kSynthetic) {
    throw um::Error{"the network scores each pixel, but data set " + std::string{spec} +
                    " has one label for an image; use synthetic"};
  }
}

// Throws: um::Error unless images meet a network of images, and texts a network of texts.
void expect_content(std::string_view spec, const DatasetOptions& options) {
  const FileDataset* const files = find_dataset(Spec{spec}.kind);
  if (!options.tokenizer.empty() && (files == nullptr || files->kind != "text")) {
    throw um::Error{"data set " + std::string{spec} +
                    " needs no tokenizer; use text:FILE, or leave it out"};
  }
  if (files == nullptr || (files->content == Content::kText) == reads_text(options)) return;
  throw um::Error{reads_text(options)
                      ? "the network learns from text, but data set " + std::string{spec} +
                            " holds images; use synthetic, text:FILE or tokens:FILE"
                      : "the network learns from images, but data set " + std::string{spec} +
                            " holds text; use synthetic, images:DIR, idx:DIR or cifar10:DIR"};
}

// Throws: um::Error unless a network of texts scores each token of a window.
void expect_token_labels(const DatasetOptions& options) {
  if (options.labels == nets::Extent{options.image.height, options.image.width}) return;
  throw um::Error{"the network reads " + nets::to_string(options.image) +
                  ", but does not score each of them; end it with a loss over a vocabulary"};
}

void expect_windows(const DatasetPair& data, const DatasetOptions& options) {
  const std::size_t windows = data.train->size();
  if (windows >= options.batch) return;
  throw um::Error{"the text is long enough for " + std::to_string(windows) + " windows of " +
                  nets::to_string(options.image) + " to learn from, too few for a batch of " +
                  std::to_string(options.batch) +
                  "; use a smaller --batch or --sequence-length, or a longer text"};
}

DatasetPair open_synthetic(const DatasetOptions& options) {
  if (reads_text(options)) return make_synthetic_text(token_task(options));
  const auto& make = options.labels == nets::square(1) ? make_synthetic : make_synthetic_masks;
  // close to the statistics for any size, seed and number of classes
  const std::size_t channels = options.image.channels;
  const bool is_grey = channels == 1;
  return prepare(make(options.image, options.classes, options.seed),
                 {.mean = std::vector<float>(channels, is_grey ? 0.3F : 0.25F),
                  .deviation = std::vector<float>(channels, is_grey ? 0.23F : 0.18F)},
                 options);
}

// Returns whether a file that can be read has no NUL in its first bytes.
bool looks_like_text(const std::string& path) {
  std::string begin(4096, '\0');
  std::ifstream file{path, std::ios::binary};
  if (!file) return false;
  file.read(begin.data(), static_cast<std::streamsize>(begin.size()));
  begin.resize(static_cast<std::size_t>(file.gcount()));
  return begin.find('\0') == std::string::npos;
}

// Returns "; did you mean images:clothes?" where a folder or text has this name, else nothing.
std::string meant_by(std::string_view spec) {
  std::error_code unreadable;
  const std::filesystem::file_status status = std::filesystem::status(spec, unreadable);
  if (is_directory(status)) {
    return "; did you mean " + std::string{kImages} + ":" + std::string{spec} + "?";
  }
  if (is_regular_file(status) && looks_like_text(std::string{spec})) {
    return "; did you mean text:" + std::string{spec} + "?";
  }
  return "";
}

}  // namespace

DatasetPair open_text(std::string_view files, const std::string& tokenizer, TokenTask task) {
  task.mask = static_cast<std::int32_t>(task.vocabulary - 1);
  if (!tokenizer.empty()) {
    BytePairEncoder encoder{read_byte_pairs(tokenizer)};
    expect_vocabulary(task, encoder.pairs().size, "the tokenizer in " + tokenizer);
    return open_files(
        files, [&](const auto& path) { return encode_file(path, encoder); }, task);
  }
  if (task.objective == Objective::kMaskedTokens) {
    expect_vocabulary(task, kByteValues, "a text of bytes");
  }
  return open_files(files, open_bytes, task);
}

DatasetPair open_tokens(std::string_view files, const TokenTask& task) {
  return open_files(files, open_token_file, task);
}

DatasetOptions dataset_options(const nets::Network& network, std::size_t batch,
                               std::uint64_t seed) {
  return {.image = network.input(),
          .classes = network.classes(),
          .batch = batch,
          .seed = seed,
          .labels = network.labels(),
          .objective = objective_of(network)};
}

std::string dataset_forms() {
  std::string text = "synthetic (generated images or text)";
  for (const FileDataset& row : kFileDatasets) {
    text += (&row == &kFileDatasets.back() ? " or " : ", ") + form_of(row) + " (" +
            std::string{row.format} + ")";
  }
  return text;
}

void expect_data_set(std::string_view spec) {
  if (spec == kSynthetic) return;
  const Spec parts{spec};
  const FileDataset* const files = find_dataset(parts.kind);
  if (files == nullptr) {
    throw um::Error{"there is no data set '" + std::string{spec} + "'; there are " +
                    listed_datasets() + meant_by(spec)};
  }
  if (parts.place.empty()) {
    throw um::Error{"data set " + parts.kind + " needs the " +
                    (files->place == "DIR" ? "folder of its files: " : "file: ") + form_of(*files)};
  }
}

DatasetPair open_dataset(std::string_view spec, const DatasetOptions& options) {
  expect_data_set(spec);
  expect_content(spec, options);
  if (reads_text(options)) {
    expect_token_labels(options);
  } else if (options.labels != nets::square(1)) {
    expect_pixel_labels(spec, options);
  }
  const auto [kind, place] = Spec{spec};
  const FileDataset* const files = find_dataset(kind);
  DatasetPair data = files == nullptr ? open_synthetic(options) : files->open(place, options);
  if (reads_text(options)) expect_windows(data, options);
  return data;
}

bool is_image_folder(std::string_view spec) { return Spec{spec}.kind == kImages; }

std::optional<std::size_t> classes_of(std::string_view spec) {
  if (!is_image_folder(spec)) return std::nullopt;
  return count_image_classes(Spec{spec}.place);
}

}  // namespace spillway
