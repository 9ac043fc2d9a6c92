#include "src/io/data/synthetic.h"

#include <algorithm>
#include <bit>
#include <memory>

#include "src/io/file_digest.h"
#include "src/io/random.h"
#include "um/error.h"

namespace spillway {
namespace {

template <typename Set>
DatasetPair make_pair(const nets::Shape& image, std::size_t classes, std::uint64_t seed) {
  return {
      .train = std::make_unique<Set>(image, classes, kSyntheticTrainImages, seed, Split::kTrain),
      .test = std::make_unique<Set>(image, classes, kSyntheticTestImages, seed, Split::kTest)};
}

}  // namespace

SyntheticDataset::SyntheticDataset(const nets::Shape& image, std::size_t classes, std::size_t size,
                                   std::uint64_t seed, Split split)
    : image_{image}, classes_{classes}, size_{size}, seed_{seed}, split_{split} {
  um::expects(image.elements() > 0 && classes > 0 && size > 0, "images of at least one class");
}

std::string SyntheticDataset::name() const {
  return "synthetic images of " + std::to_string(classes_) + " classes";
}

std::int32_t SyntheticDataset::label(std::size_t index) const {
  um::expects(index < size_, "an image of the set");
  return static_cast<std::int32_t>(index % classes_);
}

void SyntheticDataset::read(std::size_t index, std::span<float> image) const {
  um::expects(index < size_ && image.size() == image_.elements(), "an image and room for it");
  Random random = this->random(index);
  const Scene scene = compose_scene(index % classes_, classes_, image_, random);
  draw_scene(scene, image_, random, image);
}

// The images depend on nothing else.
std::string SyntheticDataset::content_sha256() const {
  return sha256_of("drawn 1: " + nets::to_string(image_) + ", " + name() + ", " +
                   std::to_string(size_) + " from seed " + std::to_string(seed_) + ", split " +
                   std::to_string(static_cast<unsigned>(split_)));
}

Scene SyntheticDataset::scene(std::size_t index) const {
  Random random = this->random(index);
  return compose_scene(index % classes_, classes_, image_, random);
}

std::string SyntheticMasks::name() const {
  return "synthetic images whose pixels are of " + std::to_string(classes()) + " classes";
}

void SyntheticMasks::labels(std::size_t index, std::span<std::int32_t> labels) const {
  um::expects(labels.size() == labels_each(*this), "room for a label for each pixel");
  mark_scene(scene(index), image(), label(index), labels);
}

DatasetPair make_synthetic(const nets::Shape& image, std::size_t classes, std::uint64_t seed) {
  return make_pair<SyntheticDataset>(image, classes, seed);
}

DatasetPair make_synthetic_masks(const nets::Shape& image, std::size_t classes,
                                 std::uint64_t seed) {
  return make_pair<SyntheticMasks>(image, classes, seed);
}

namespace {

constexpr std::size_t kMostSymbols = 64;
constexpr std::uint64_t kChain = 2;  // in the key of a generator, different from the splits

// Draws which of the four tokens follows: 0 with probability 1/2, 1 with 1/4, 2 and 3 with 1/8.
std::uint64_t draw_branch(Random& random) {
  return static_cast<std::uint64_t>(std::countl_zero(random.next() | 1ULL << 60U));
}

}  // namespace

// The last token and BERT's mask are not multiples of the stride below.
SyntheticText::SyntheticText(const TokenTask& task, std::size_t size, Split split)
    : TokenDataset{task},
      size_{size},
      split_{split},
      symbols_{std::min(kMostSymbols, task.vocabulary - 1)},
      stride_{(task.vocabulary - 1) / symbols_} {
  um::expects(size > 0 && task.vocabulary > 1, "windows of at least two tokens");
}

std::string SyntheticText::name() const {
  return "synthetic text of " + std::to_string(symbols_) + " tokens";
}

std::string SyntheticText::content_sha256() const {
  return sha256_of("drawn text 1: " + std::to_string(size_) + ", split " +
                   std::to_string(static_cast<unsigned>(split_)) + ", " + described_task());
}

void SyntheticText::read_window(std::size_t index, std::span<std::int32_t> tokens) const {
  const std::uint64_t seed = task().seed;
  Random random{seed, static_cast<std::uint64_t>(split_), index};
  std::uint64_t symbol = random.next() % symbols_;
  for (std::int32_t& token : tokens) {
    token = static_cast<std::int32_t>(symbol * stride_);
    symbol = Random{seed, kChain, symbol, draw_branch(random)}.next() % symbols_;
  }
}

DatasetPair make_synthetic_text(const TokenTask& task) {
  return {.train = std::make_unique<SyntheticText>(task, kSyntheticTrainTexts, Split::kTrain),
          .test = std::make_unique<SyntheticText>(task, kSyntheticTestTexts, Split::kTest)};
}

}  // namespace spillway
