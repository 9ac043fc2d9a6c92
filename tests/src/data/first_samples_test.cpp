// The first samples of a data set: what it says of itself, and that they are shown as its own are.

#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "src/io/data/dataset.h"
#include "um/error.h"

namespace spillway {
namespace {

// An image is its index; shown in an epoch, ten times the epoch more.
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

}  // namespace
}  // namespace spillway
