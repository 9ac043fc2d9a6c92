#include "src/data/synthetic_masks.h"

#include "um/error.h"

namespace spillway {

SyntheticMasks::SyntheticMasks(const nets::Shape& image, std::size_t classes, std::size_t size,
                               std::uint64_t seed, Split split)
    : figures_{image, classes - 1, size, seed, split} {}

std::string SyntheticMasks::name() const {
  return "synthetic images whose pixels are of " + std::to_string(classes()) + " classes";
}

void SyntheticMasks::labels(std::size_t index, std::span<std::int32_t> labels) const {
  um::expects(labels.size() == labels_each(*this), "room for a label for each pixel");
  mark_scene(figures_.scene(index), image(), label(index), labels);
}

DatasetPair make_synthetic_masks(const nets::Shape& image, std::size_t classes,
                                 std::uint64_t seed) {
  return {.train = std::make_unique<SyntheticMasks>(image, classes, kSyntheticTrainImages, seed,
                                                    Split::kTrain),
          .test = std::make_unique<SyntheticMasks>(image, classes, kSyntheticTestImages, seed,
                                                   Split::kTest)};
}

}  // namespace spillway
