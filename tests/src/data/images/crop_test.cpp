#include "src/io/images/crop.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>

namespace spillway {
namespace {

constexpr nets::Extent kSquare{.height = 224, .width = 224};

// torchvision: Resize(256) makes 341 of 500 x 256 / 375; round((341 - 224) / 2) is 58, the even
// one.
TEST(CentralCrop, IsTorchvisionsResizeAndCenterCrop) {
  const Crop crop = central_crop({.height = 375, .width = 500}, kSquare, 0.875F);
  EXPECT_EQ(crop.part, (nets::Extent{.height = 375, .width = 500}));
  EXPECT_EQ(crop.resized, (nets::Extent{.height = 256, .width = 341}));
  EXPECT_EQ(crop.shown_left, 58U);
  EXPECT_EQ(crop.shown_top, 16U);
}

TEST(CentralCrop, CoversNetworksOfAnyShape) {
  for (const nets::Extent image : {nets::square(1), nets::Extent{1, 5000}, nets::Extent{77, 3}}) {
    for (const nets::Extent shown : {kSquare, nets::Extent{32, 96}, nets::Extent{7, 5}}) {
      const Crop crop = central_crop(image, shown, 1);
      EXPECT_LE(crop.shown_left + shown.width, crop.resized.width);
      EXPECT_LE(crop.shown_top + shown.height, crop.resized.height);
      EXPECT_TRUE(crop.resized.width == shown.width || crop.resized.height == shown.height);
    }
  }
}

// The means are those of 20,000 draws of torchvision.
TEST(DrawnCrop, IsInTheImageAndTakesThePartsThatItShould) {
  constexpr nets::Extent kImage{.height = 375, .width = 500};
  constexpr int kDraws = 4000;
  Random random{1};
  double area = 0;
  double log_ratio = 0;
  for (int i = 0; i < kDraws; ++i) {
    const Crop crop = drawn_crop(kImage, kSquare, 0.08F, random);
    EXPECT_LE(crop.left + crop.part.width, kImage.width);
    EXPECT_LE(crop.top + crop.part.height, kImage.height);
    const auto height = static_cast<double>(crop.part.height);
    const auto width = static_cast<double>(crop.part.width);
    const double part = height * width / (375.0 * 500.0);
    EXPECT_GT(part, 0.078);
    EXPECT_GT(width / height, 0.74);
    EXPECT_LT(width / height, 1.35);
    area += part / kDraws;
    log_ratio += std::log(width / height) / kDraws;
  }
  EXPECT_NEAR(area, 0.435, 0.015);
  EXPECT_NEAR(log_ratio, 0.031, 0.02);
}

TEST(DrawnCrop, IsTheMiddleOfAnImageThatIsTooNarrow) {
  Random random{1};
  const Crop crop = drawn_crop({.height = 10, .width = 1000}, kSquare, 0.5F, random);
  EXPECT_EQ(crop.part, (nets::Extent{.height = 10, .width = 13}));
  EXPECT_EQ(crop.left, 493U);
}

TEST(DrawnCrop, IsAllOfOnePixel) {
  Random random{1};
  for (int i = 0; i < 100; ++i) {
    const Crop crop = drawn_crop(nets::square(1), kSquare, 0.08F, random);
    EXPECT_EQ(crop.part, nets::square(1));
  }
}

TEST(DrawnRatio, IsUniformInLogarithm) {
  Random random{2};
  std::array<int, 4> counts{};
  constexpr int kDraws = 4000;
  for (int i = 0; i < kDraws; ++i) {
    const double ratio = drawn_ratio(0.5, 8, random);
    ASSERT_GE(ratio, 0.5);
    ASSERT_LE(ratio, 8);
    ++counts.at(static_cast<std::size_t>(std::floor(std::log2(ratio) + 1)));
  }
  for (const int count : counts) EXPECT_NEAR(count, kDraws / 4, 120);
}

}  // namespace
}  // namespace spillway
