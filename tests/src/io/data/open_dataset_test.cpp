#include "src/io/data/open_dataset.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "src/io/data/prepared_dataset.h"
#include "tests/refusal.h"
#include "tests/temporary_folder.h"

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
