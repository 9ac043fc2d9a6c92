// Augmented training images, tested on one with distinguishable pixels.
#include "src/io/images/augmentation.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <span>
#include <vector>

#include "src/io/images/crop.h"
#include "src/io/images/image_pipeline.h"
#include "tests/src/io/images/image_files.h"

namespace spillway::test {
namespace {

constexpr nets::Shape kSquare{.channels = 3, .height = 16, .width = 16};

using Numbers = std::vector<float>;

ImagePipeline pipeline_of(const Augmentation& augmentation, const nets::Shape& image = kSquare) {
  return {image, {.augmentation = augmentation}};
}

Numbers augmented(const ImagePipeline& pipeline, std::uint64_t seed) {
  const FileContent file = golden_image("rgb.png");
  Numbers image(pipeline.image().elements());
  pipeline.augment(std::as_bytes(std::span{file}), Random{seed}, image);
  return image;
}

Numbers evaluated(const ImagePipeline& pipeline) {
  const FileContent file = golden_image("rgb.png");
  Numbers image(pipeline.image().elements());
  pipeline.evaluate(std::as_bytes(std::span{file}), image);
  return image;
}

Numbers mirrored(Numbers image) {
  for (std::size_t row = 0; row < image.size(); row += kSquare.width) {
    std::ranges::reverse(std::span{image}.subspan(row, kSquare.width));
  }
  return image;
}

TEST(Augmentation, FlipsAsOftenAsItIsTold) {
  const ImagePipeline half = pipeline_of({.flip = 0.5F});
  const Numbers image = evaluated(half);
  int flips = 0;
  for (std::uint64_t seed = 0; seed < 400; ++seed) {
    const Numbers changed = augmented(half, seed);
    if (changed == image) continue;
    ASSERT_EQ(changed, mirrored(image));
    ++flips;
  }
  EXPECT_NEAR(flips, 200, 40);
  EXPECT_EQ(augmented(pipeline_of({.flip = 1}), 5), mirrored(image));
}

// The rectangle becomes 0, the mean, in all channels.
TEST(Augmentation, ErasesARectangle) {
  const ImagePipeline pipeline = pipeline_of({.erase = 1});
  const Numbers image = evaluated(pipeline);
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    const Numbers changed = augmented(pipeline, seed);
    std::size_t left = 16, right = 0, top = 16, bottom = 0, count = 0;
    for (std::size_t i = 0; i < 256; ++i) {
      if (changed[i] == image[i]) continue;
      ASSERT_TRUE(changed[i] == 0 && changed[256 + i] == 0 && changed[512 + i] == 0);
      left = std::min(left, i % 16);
      right = std::max(right, i % 16 + 1);
      top = std::min(top, i / 16);
      bottom = std::max(bottom, i / 16 + 1);
      ++count;
    }
    EXPECT_EQ(count, (right - left) * (bottom - top));
    EXPECT_GE(count, 3U);
    EXPECT_LE(count, 95U);  // 33 % of 256, plus rounding
  }
}

TEST(Augmentation, KeepsColoursInTheirRange) {
  const ImagePipeline pipeline = pipeline_of({.color_jitter = 0.4F});
  EXPECT_NE(augmented(pipeline, 1), augmented(pipeline, 2));
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    for (const float value : augmented(pipeline, seed)) {
      EXPECT_TRUE(-2.2F < value && value < 2.7F) << value;  // (0 - 0.485) / 0.229 and the like
    }
  }
}

// The hue turns, while each pixel's largest and smallest colour stay.
TEST(Augmentation, TurnsTheHueAlone) {
  const ImagePipeline pipeline{
      kSquare, {.augmentation = {.hue = 0.5F}, .mean = {0, 0, 0}, .deviation = {1, 1, 1}}};
  const Numbers image = evaluated(pipeline);
  EXPECT_NE(augmented(pipeline, 1), augmented(pipeline, 2));
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    const Numbers turned = augmented(pipeline, seed);
    EXPECT_NE(turned, image);
    for (std::size_t i = 0; i < 256; ++i) {
      const auto ends = [i](const Numbers& of) {
        return std::minmax({of[i], of[256 + i], of[512 + i]});
      };
      EXPECT_NEAR(ends(turned).first, ends(image).first, 1e-6);
      EXPECT_NEAR(ends(turned).second, ends(image).second, 1e-6);
    }
  }
}

TEST(Augmentation, GivesAGreyNetworkTheLuminance) {
  const ImagePipeline grey = pipeline_of({}, {.channels = 1, .height = 16, .width = 16});
  const FileContent file = golden_image("grey.png");  // Pillow's luminance of rgb.png
  Numbers image(256);
  grey.evaluate(std::as_bytes(std::span{file}), image);
  const Numbers of_colours = evaluated(grey);
  for (std::size_t i = 0; i < image.size(); ++i) EXPECT_NEAR(image[i], of_colours[i], 0.02);
}

TEST(Augmentation, HasNames) {
  EXPECT_EQ(to_string(find_augmentation("none").value()), "none");
  EXPECT_EQ(to_string(find_augmentation("standard").value()), "crop 0.08, flip 0.5");
  EXPECT_EQ(to_string(find_augmentation("strong").value()),
            "crop 0.08, flip 0.5, color jitter 0.4, erase 0.1");
  EXPECT_EQ(to_string({.hue = 0.1F}), "hue 0.1");
  EXPECT_FALSE(find_augmentation("usual"));
}

constexpr nets::Extent kSquareImage{.height = 224, .width = 224};

// torchvision: Resize(256) gives 341 for 500 x 256 / 375; round((341 - 224) / 2) is 58, the even
// neighbour.
TEST(CentralCrop, IsTorchvisionsResizeAndCenterCrop) {
  const Crop crop = central_crop({.height = 375, .width = 500}, kSquareImage, 0.875F);
  EXPECT_EQ(crop.part, (nets::Extent{.height = 375, .width = 500}));
  EXPECT_EQ(crop.resized, (nets::Extent{.height = 256, .width = 341}));
  EXPECT_EQ(crop.shown_left, 58U);
  EXPECT_EQ(crop.shown_top, 16U);
}

TEST(CentralCrop, CoversNetworksOfAnyShape) {
  for (const nets::Extent image : {nets::square(1), nets::Extent{1, 5000}, nets::Extent{77, 3}}) {
    for (const nets::Extent shown : {kSquareImage, nets::Extent{32, 96}, nets::Extent{7, 5}}) {
      const Crop crop = central_crop(image, shown, 1);
      EXPECT_LE(crop.shown_left + shown.width, crop.resized.width);
      EXPECT_LE(crop.shown_top + shown.height, crop.resized.height);
      EXPECT_TRUE(crop.resized.width == shown.width || crop.resized.height == shown.height);
    }
  }
}

// The means come from 20,000 draws of torchvision.
TEST(DrawnCrop, IsInTheImageAndTakesThePartsThatItShould) {
  constexpr nets::Extent kImage{.height = 375, .width = 500};
  constexpr int kDraws = 4000;
  Random random{1};
  double area = 0;
  double log_ratio = 0;
  for (int i = 0; i < kDraws; ++i) {
    const Crop crop = drawn_crop(kImage, kSquareImage, 0.08F, random);
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
  const Crop crop = drawn_crop({.height = 10, .width = 1000}, kSquareImage, 0.5F, random);
  EXPECT_EQ(crop.part, (nets::Extent{.height = 10, .width = 13}));
  EXPECT_EQ(crop.left, 493U);
}

TEST(DrawnCrop, IsAllOfOnePixel) {
  Random random{1};
  for (int i = 0; i < 100; ++i) {
    const Crop crop = drawn_crop(nets::square(1), kSquareImage, 0.08F, random);
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
}  // namespace spillway::test
