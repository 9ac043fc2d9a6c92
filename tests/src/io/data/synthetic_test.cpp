#include "src/io/data/synthetic.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <map>
#include <vector>

#include "src/io/data/prepared_dataset.h"

namespace spillway {
namespace {

using nets::Shape;

constexpr Shape kColourImage{.channels = 3, .height = 32, .width = 32};
constexpr Shape kGreyImage{.channels = 1, .height = 28, .width = 28};

std::vector<float> image_of(const Dataset& dataset, std::size_t index) {
  std::vector<float> image(dataset.image().elements());
  dataset.read(index, image);
  return image;
}

TEST(SyntheticDataset, DrawsTheSameImageEachTime) {
  const SyntheticDataset a{kColourImage, 10, 100, 7, Split::kTrain};
  const SyntheticDataset b{kColourImage, 10, 5000, 7, Split::kTrain};
  const std::vector<float> first = image_of(a, 42);
  EXPECT_NE(image_of(a, 43), first);
  EXPECT_EQ(image_of(a, 42), first);
  EXPECT_EQ(image_of(b, 42), first);  // independent of the set's size
}

// Recorded once to detect changes: a resumed training must see the same images.
TEST(SyntheticDataset, DrawsTheSameImageAsEver) {
  const SyntheticDataset dataset{kGreyImage, 10, 100, 7, Split::kTrain};
  const std::vector<float> image = image_of(dataset, 42);
  EXPECT_FLOAT_EQ(image[0], 0.25888276F);
  EXPECT_FLOAT_EQ(image[14 * 28 + 14], 0.84120476F);
}

TEST(SyntheticDataset, DrawsOtherImagesForAnotherSeedOrSplit) {
  const SyntheticDataset dataset{kColourImage, 10, 100, 7, Split::kTrain};
  EXPECT_NE(image_of(SyntheticDataset{kColourImage, 10, 100, 8, Split::kTrain}, 42),
            image_of(dataset, 42));
  EXPECT_NE(image_of(SyntheticDataset{kColourImage, 10, 100, 7, Split::kTest}, 42),
            image_of(dataset, 42));
}

TEST(SyntheticDataset, HasAsManyImagesOfEachClass) {
  const SyntheticDataset dataset{kColourImage, 7, 100, 7, Split::kTrain};
  std::map<std::int32_t, int> counts;
  for (std::size_t i = 0; i < dataset.size(); ++i) ++counts[dataset.label(i)];
  EXPECT_EQ(counts.size(), 7U);
  for (const auto& [label, count] : counts) {
    EXPECT_GE(label, 0);
    EXPECT_TRUE(count == 14 || count == 15) << label;  // 100 / 7 = 14.3
  }
}

TEST(SyntheticDataset, StaysBetweenBlackAndWhite) {
  const SyntheticDataset dataset{kColourImage, 1000, 1000, 7, Split::kTrain};
  for (std::size_t i = 0; i < 1000; i += 7) {
    const std::vector<float> image = image_of(dataset, i);
    const auto [min, max] = std::minmax_element(image.begin(), image.end());
    EXPECT_GE(*min, 0.0F);
    EXPECT_LE(*max, 1.0F);
    EXPECT_GT(*max - *min, 0.2F) << "nothing to see in image " << i;
  }
}

TEST(SyntheticDataset, DrawsImagesOfAnyShape) {
  for (const Shape& shape : {Shape{.channels = 1, .height = 1, .width = 1},
                             Shape{.channels = 4, .height = 5, .width = 33}}) {
    EXPECT_EQ(image_of(SyntheticDataset{shape, 3, 9, 7, Split::kTest}, 8).size(), shape.elements());
  }
}

// Accuracy on test images of the nearest among `count` training images, all shrunk to 8x8. This is
// about the weakest useful way to learn.
double nearest_neighbour_accuracy(const Shape& shape, std::size_t classes, std::size_t count) {
  const DatasetPair pair = make_synthetic(shape, classes, 7);
  const Shape small{.channels = shape.channels, .height = 8, .width = 8};
  const Resize shrink{shape, small};
  const auto features = [&](const Dataset& dataset, std::size_t index) {
    std::vector<float> result(small.elements());
    shrink(image_of(dataset, index), result);
    return result;
  };
  std::vector<std::vector<float>> known;
  for (std::size_t i = 0; i < count; ++i) known.push_back(features(*pair.train, i));
  constexpr std::size_t kTests = 200;
  std::size_t correct = 0;
  for (std::size_t i = 0; i < kTests; ++i) {
    const std::vector<float> image = features(*pair.test, i);
    float min = std::numeric_limits<float>::max();
    std::size_t nearest = 0;
    for (std::size_t k = 0; k < known.size(); ++k) {
      float distance = 0;
      for (std::size_t j = 0; j < image.size(); ++j) {
        distance += (image[j] - known[k][j]) * (image[j] - known[k][j]);
      }
      if (distance < min) nearest = k;
      min = std::min(min, distance);
    }
    correct += pair.train->label(nearest) == pair.test->label(i) ? 1 : 0;
  }
  return static_cast<double>(correct) / kTests;
}

TEST(SyntheticDataset, TeachesFigures) {
  EXPECT_GT(nearest_neighbour_accuracy(kGreyImage, 10, 2000), 0.5);  // chance: 0.1
}

TEST(SyntheticDataset, TeachesColours) {
  EXPECT_GT(nearest_neighbour_accuracy(kColourImage, 100, 2000), 0.2);  // chance: 0.01
}

constexpr Shape kImage{.channels = 3, .height = 24, .width = 33};
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
  EXPECT_EQ(image_of(masks, 42), image_of(figures, 42));
}

// The figure's radius is at least a quarter of the shorter side, so that it covers some whole
// pixels. All other pixels are background or edge.
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

// Figures are brighter than the dull background: the mask lies on the figure.
TEST(SyntheticMasks, LiesOverTheFigure) {
  const SyntheticMasks masks{{.channels = 1, .height = 40, .width = 40}, 3, 10, 7, Split::kTest};
  for (std::size_t i = 0; i < masks.size(); ++i) {
    const std::vector<float> image = image_of(masks, i);
    const std::vector<std::int32_t> labels = labels_of(masks, i);
    for (std::size_t p = 0; p < image.size(); ++p) {
      if (labels[p] < 0) continue;
      EXPECT_EQ(image[p] > 0.6F, labels[p] > 0) << i;
    }
  }
}

}  // namespace
}  // namespace spillway
