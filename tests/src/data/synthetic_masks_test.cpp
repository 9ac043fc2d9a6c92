#include "src/data/synthetic_masks.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

namespace spillway {
namespace {

constexpr nets::Shape kImage{.channels = 3, .height = 24, .width = 33};
constexpr std::size_t kPixels = 24 * 33;
constexpr std::size_t kClasses = 8;

std::vector<std::int32_t> labels_of(const Dataset& dataset, std::size_t index) {
  std::vector<std::int32_t> labels(labels_each(dataset));
  dataset.labels(index, labels);
  return labels;
}

TEST(SyntheticMasks, HasTheImagesOfTheFigures) {
  const SyntheticMasks masks{kImage, kClasses, 100, 7, Split::kTrain};
  const SyntheticDataset figures{kImage, kClasses - 1, 100, 7, Split::kTrain};
  EXPECT_EQ(masks.classes(), kClasses);
  std::vector<float> image(kImage.elements());
  std::vector<float> same(kImage.elements());
  masks.read(42, image);
  figures.read(42, same);
  EXPECT_EQ(image, same);
}

// The figure's radius is a quarter of the lesser side at least, so that it has some whole pixels;
// everything else is background but for the edge.
TEST(SyntheticMasks, LabelsTheFigureTheBackgroundAndNotTheEdge) {
  const SyntheticMasks masks{kImage, kClasses, 100, 7, Split::kTrain};
  for (std::size_t i = 0; i < 30; ++i) {
    const std::vector<std::int32_t> labels = labels_of(masks, i);
    ASSERT_EQ(labels.size(), kPixels);
    const auto background = std::ranges::count(labels, 0);
    const auto figure = std::ranges::count(labels, masks.label(i));
    const auto edge = std::ranges::count(labels, -1);
    EXPECT_EQ(background + figure + edge, static_cast<std::ptrdiff_t>(kPixels));
    EXPECT_GT(figure, 0);
    EXPECT_GT(edge, 0);
    EXPECT_GT(background, figure);
  }
}

// Figures are brighter than the background, which is dull: the mask lies where the figure is.
TEST(SyntheticMasks, LiesOverTheFigure) {
  const SyntheticMasks masks{{.channels = 1, .height = 40, .width = 40}, 3, 10, 7, Split::kTest};
  std::vector<float> image(1600);
  for (std::size_t i = 0; i < masks.size(); ++i) {
    masks.read(i, image);
    const std::vector<std::int32_t> labels = labels_of(masks, i);
    for (std::size_t p = 0; p < image.size(); ++p) {
      if (labels[p] < 0) continue;
      EXPECT_EQ(image[p] > 0.6F, labels[p] > 0) << i;
    }
  }
}

}  // namespace
}  // namespace spillway
