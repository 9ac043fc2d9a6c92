// The first samples of a data set: their description and content.
// Digests that identify a data set wherever it is stored.
#include "src/io/data/dataset.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "src/io/data/open_dataset.h"
#include "src/io/data/synthetic.h"
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

}  // namespace
}  // namespace spillway
