// The first samples of a data set: their description and content.
// Digests that identify a data set wherever it is stored.
#include "src/io/data/dataset.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <filesystem>
#include <limits>
#include <map>
#include <memory>
#include <numeric>
#include <string>
#include <vector>

#include "src/io/data/open_dataset.h"
#include "src/io/data/prepared_dataset.h"
#include "src/io/data/synthetic.h"
#include "tests/refusal.h"
#include "tests/temporary_folder.h"
#include "um/error.h"

namespace spillway {
namespace {

// An image is its index, plus ten times the epoch if one is given.
class Numbered final : public Dataset {
 public:
  [[nodiscard]] std::string name() const override { return "numbers"; }
  [[nodiscard]] nets::Shape image() const override { return {1, 1, 1}; }
  [[nodiscard]] std::size_t classes() const override { return 5; }
  [[nodiscard]] std::size_t size() const override { return 5; }
  void read(std::size_t index, std::span<float> image) const override {
    image[0] = static_cast<float>(index);
  }
  [[nodiscard]] std::int32_t label(std::size_t index) const override {
    return static_cast<std::int32_t>(index);
  }
  void show(std::size_t index, std::uint64_t epoch, std::span<float> image,
            std::span<std::int32_t> labels) const override {
    read(index, image);
    image[0] += 10.F * static_cast<float>(epoch);
    labels[0] = label(index);
  }
  [[nodiscard]] std::string content_sha256() const override { return "whole"; }
};

TEST(FirstSamples, AreShownAsTheWholeShowsThem) {
  const auto first = first_samples(std::make_unique<Numbered>(), 3);
  EXPECT_EQ(first->size(), 3U);
  EXPECT_EQ(first->classes(), 5U);
  EXPECT_EQ(first->name(), "the first 3 of numbers");
  std::vector<float> image(1);
  std::vector<std::int32_t> labels(1);
  first->show(2, 4, image, labels);
  EXPECT_EQ(image[0], 42.F);
  EXPECT_EQ(labels[0], 2);
}

TEST(FirstSamples, AreOtherDataThanTheWhole) {
  const auto three = first_samples(std::make_unique<Numbered>(), 3);
  const auto four = first_samples(std::make_unique<Numbered>(), 4);
  EXPECT_NE(three->content_sha256(), Numbered{}.content_sha256());
  EXPECT_NE(three->content_sha256(), four->content_sha256());
}

TEST(FirstSamples, AreNotMoreThanThereAre) {
  EXPECT_THROW(static_cast<void>(first_samples(std::make_unique<Numbered>(), 6)), um::Error);
}

constexpr nets::Shape kSmall{.channels = 1, .height = 8, .width = 8};

std::string synthetic(std::uint64_t seed, std::size_t classes = 10,
                      const nets::Shape& image = kSmall) {
  return content_sha256(make_synthetic(image, classes, seed));
}

TEST(DataContent, OfDrawnImagesIsWhatTheyAreDrawnFrom) {
  EXPECT_EQ(synthetic(1), synthetic(1));
  EXPECT_NE(synthetic(1), synthetic(2));
  EXPECT_NE(synthetic(1), synthetic(1, 9));
  EXPECT_NE(synthetic(1), synthetic(1, 10, {.channels = 1, .height = 8, .width = 9}));
  EXPECT_NE(synthetic(1), content_sha256(make_synthetic_masks(kSmall, 10, 1)));
}

class IdxContent : public testing::Test {
 protected:
  // Writes two images of 2x2; the second ends with `pixel` and has the label `label`.
  [[nodiscard]] std::string content(const std::string& name, std::uint8_t pixel,
                                    std::uint8_t label) const {
    std::filesystem::create_directories(folder_.file(name));
    for (const std::string split : {"train", "t10k"}) {
      folder_.write(name + "/" + split + "-images-idx3-ubyte",
                    {0, 0, 8, 3, 0, 0, 0, 2, 0, 0, 0, 2, 0, 0, 0, 2, 1, 2, 3, 4, 5, 6, 7, pixel});
      folder_.write(name + "/" + split + "-labels-idx1-ubyte", {0, 0, 8, 1, 0, 0, 0, 2, 0, label});
    }
    return content_sha256(
        open_dataset("idx:" + folder_.file(name), {.image = kSmall, .classes = 10, .batch = 1}));
  }
  test::TemporaryFolder folder_;
};

TEST_F(IdxContent, IsThatOfTheirFiles) {
  const std::string first = content("here", 8, 1);
  EXPECT_EQ(first, content("there", 8, 1));
  EXPECT_NE(first, content("here", 9, 1));
  EXPECT_NE(first, content("here", 8, 2));
}

// A data set without a digest of its own, which is read as a whole.
class TwoImages final : public Dataset {
 public:
  explicit TwoImages(float last) : last_{last} {}
  [[nodiscard]] std::string name() const override { return "two images"; }
  [[nodiscard]] nets::Shape image() const override { return {1, 1, 2}; }
  [[nodiscard]] std::size_t classes() const override { return 2; }
  [[nodiscard]] std::size_t size() const override { return 2; }
  void read(std::size_t index, std::span<float> image) const override {
    image[0] = static_cast<float>(index);
    image[1] = last_;
  }
  [[nodiscard]] std::int32_t label(std::size_t index) const override {
    return static_cast<std::int32_t>(index);
  }

 private:
  float last_;
};

TEST(DataContent, IsReadWhereNothingElseIsKnown) {
  EXPECT_EQ(TwoImages{1}.content_sha256(), TwoImages{1}.content_sha256());
  EXPECT_NE(TwoImages{1}.content_sha256(), TwoImages{2}.content_sha256());
}

using nets::Shape;

std::vector<float> resized(const std::vector<float>& image, const Shape& from, const Shape& to) {
  std::vector<float> result(to.elements());
  Resize{from, to}(image, result);
  return result;
}

void expect_near(const std::vector<float>& result, const std::vector<float>& expected) {
  ASSERT_EQ(result.size(), expected.size());
  for (std::size_t i = 0; i < result.size(); ++i) EXPECT_NEAR(result[i], expected[i], 1e-6) << i;
}

TEST(Resize, LeavesTheSameShapeAlone) {
  const Shape shape{.channels = 2, .height = 3, .width = 5};
  std::vector<float> image(shape.elements());
  std::iota(image.begin(), image.end(), 0.0F);
  EXPECT_EQ(resized(image, shape, shape), image);
}

TEST(Resize, GrowsBilinearlyBetweenCentres) {
  // Centres of the four outputs: -0.25 (the edge), 0.25, 0.75, 1.25 (the edge).
  expect_near(resized({0, 1}, {.channels = 1, .width = 2}, {.channels = 1, .width = 4}),
              {0, 0.25, 0.75, 1});
  expect_near(resized({0, 1, 2, 3}, {.channels = 1, .height = 2, .width = 2},
                      {.channels = 1, .height = 4, .width = 2}),
              {0, 1, 0.5, 1.5, 1.5, 2.5, 2, 3});
}

TEST(Resize, AveragesWhenItShrinks) {
  expect_near(resized({0, 1, 2, 3, 10, 11, 12, 13}, {.channels = 1, .height = 2, .width = 4},
                      {.channels = 1, .height = 1, .width = 2}),
              {5.5, 7.5});  // (0 + 1 + 10 + 11) / 4, (2 + 3 + 12 + 13) / 4
}

TEST(Resize, WeighsInputsThatLieInTwoOutputs) {
  // Each output covers 1.5 inputs: (0 + 3 / 2) / 1.5 and (3 / 2 + 9) / 1.5.
  expect_near(resized({0, 3, 9}, {.channels = 1, .width = 3}, {.channels = 1, .width = 2}), {1, 7});
}

TEST(Resize, KeepsAConstantImageConstant) {
  const Shape from{.channels = 1, .height = 8, .width = 8};
  const std::vector<float> image(from.elements(), 0.75F);
  for (const std::size_t side : {1U, 5U, 7U, 13U, 28U}) {
    const Shape to{.channels = 1, .height = side, .width = 2 * side};
    expect_near(resized(image, from, to), std::vector<float>(to.elements(), 0.75F));
  }
}

TEST(Resize, RepeatsAGreyImageInEveryChannel) {
  expect_near(resized({1, 2}, {.channels = 1, .width = 2}, {.channels = 3, .width = 2}),
              {1, 2, 1, 2, 1, 2});
}

TEST(Resize, TurnsColoursIntoLuminance) {
  expect_near(resized({1, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1}, {.channels = 3, .width = 4},
                      {.channels = 1, .width = 4}),
              {0.299F + 0, 0, 0.587F, 0.114F});
}

TEST(Resize, RefusesChannelsItHasNoRuleFor) {
  EXPECT_EQ(test::refusal([] {
              Resize{{.channels = 3}, {.channels = 4}};
            }),
            "images of 3 channels cannot become images of 4; choose a network image of 3 channels");
}

}  // namespace
}  // namespace spillway

namespace spillway::test {
namespace {

using nets::Shape;

constexpr Shape kGrey{.channels = 1, .height = 16, .width = 16};
constexpr Shape kColour{.channels = 3, .height = 16, .width = 16};

// Writes two grey training images of 2x2, black and white, and one black test image.
void write_idx(const TemporaryFolder& folder) {
  folder.write("train-images-idx3-ubyte",
               {0, 0, 8, 3, 0, 0, 0, 2, 0, 0, 0, 2, 0, 0, 0, 2, 0, 0, 0, 0, 255, 255, 255, 255});
  folder.write("train-labels-idx1-ubyte", {0, 0, 8, 1, 0, 0, 0, 2, 0, 1});
  folder.write("t10k-images-idx3-ubyte",
               {0, 0, 8, 3, 0, 0, 0, 1, 0, 0, 0, 2, 0, 0, 0, 2, 0, 0, 0, 0});
  folder.write("t10k-labels-idx1-ubyte", {0, 0, 8, 1, 0, 0, 0, 1, 0});
}

TEST(OpenDataset, ResizesAndStandardisesIdxFiles) {
  const TemporaryFolder folder;
  write_idx(folder);
  const DatasetPair pair =
      open_dataset("idx:" + folder.path().string(), {.image = kColour, .classes = 10});
  EXPECT_EQ(pair.train->image(), kColour);
  EXPECT_EQ(pair.train->classes(), 10U);
  EXPECT_EQ(pair.train->label(1), 1);
  // Half of the pixels are 0 and half are 1: mean 1/2, deviation 1/2. Black becomes -1, white 1.
  std::vector<float> image(kColour.elements());
  pair.train->read(1, image);
  for (const float value : image) EXPECT_NEAR(value, 1.0F, 1e-6);
  pair.test->read(0, image);  // with the statistics of the training images
  for (const float value : image) EXPECT_NEAR(value, -1.0F, 1e-6);
}

TEST(OpenDataset, OpensCifar10) {
  const TemporaryFolder folder;
  std::vector<std::uint8_t> white(3073, 255);
  white[0] = 3;
  for (const std::string name : {"data_batch_1", "data_batch_2", "data_batch_3", "data_batch_4",
                                 "data_batch_5", "test_batch"}) {
    folder.write(name + ".bin", white);
  }
  const DatasetPair pair =
      open_dataset("cifar10:" + folder.path().string(), {.image = kColour, .classes = 10});
  EXPECT_EQ(pair.train->size(), 5U);
  std::vector<float> image(kColour.elements());
  pair.test->read(0, image);
  EXPECT_NEAR(image[0], (1 - 0.4914) / 0.2470, 1e-5);  // red
}

TEST(OpenDataset, DrawsSyntheticImagesAboutStandardised) {
  for (const Shape& shape : {kGrey, kColour}) {
    const DatasetPair pair = open_dataset("synthetic", {.image = shape, .classes = 20, .seed = 7});
    EXPECT_EQ(pair.train->image(), shape);
    EXPECT_EQ(pair.train->classes(), 20U);
    double sum = 0;
    double squares = 0;
    std::vector<float> image(shape.elements());
    constexpr std::size_t kImages = 200;
    for (std::size_t i = 0; i < kImages; ++i) {
      pair.train->read(i, image);
      for (const double value : image) sum += value;
      for (const double value : image) squares += value * value;
    }
    const auto count = static_cast<double>(kImages * shape.elements());
    EXPECT_NEAR(sum / count, 0.0, 0.3);
    EXPECT_NEAR(std::sqrt(squares / count), 1.0, 0.3);
  }
}

// A data set with all pixels 1/2.
class PlainDataset final : public Dataset {
 public:
  [[nodiscard]] std::string name() const override { return "plain"; }
  [[nodiscard]] Shape image() const override { return kGrey; }
  [[nodiscard]] std::size_t classes() const override { return 1; }
  [[nodiscard]] std::size_t size() const override { return 3; }
  void read(std::size_t /*index*/, std::span<float> image) const override {
    std::fill(image.begin(), image.end(), 0.5F);
  }
  [[nodiscard]] std::int32_t label(std::size_t /*index*/) const override { return 0; }
};

TEST(MeasureChannels, GivesAnEvenChannelTheDeviationOne) {
  const ChannelStatistics statistics = measure_channels(PlainDataset{});
  EXPECT_FLOAT_EQ(statistics.mean.at(0), 0.5F);
  EXPECT_EQ(statistics.deviation.at(0), 1.0F);
}

TEST(OpenDataset, LabelsThePixelsForANetworkThatScoresThem) {
  const DatasetOptions options{.image = {3, 9, 7}, .classes = 4, .labels = {9, 7}};
  const DatasetPair pair = open_dataset("synthetic", options);
  ASSERT_TRUE(pair.train->labels_pixels());
  std::vector<std::int32_t> labels(63, 99);
  pair.test->labels(5, labels);
  EXPECT_EQ(std::ranges::count(labels, 99), 0);
}

TEST(OpenDataset, RefusesLabelsThatTheNetworkCannotUse) {
  EXPECT_EQ(
      refusal([] {
        (void)open_dataset("synthetic", {.image = {3, 32, 32}, .classes = 10, .labels = {7, 8}});
      }),
      "the network ends with scores for 7x8 places of an image of 32x32; end it with a "
      "linear layer, or with a score for each pixel");
}

}  // namespace
}  // namespace spillway::test

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
