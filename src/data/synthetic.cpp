#include "src/data/synthetic.h"

#include "src/files/file_digest.h"
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

// The images are a function of these alone.
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

}  // namespace spillway
