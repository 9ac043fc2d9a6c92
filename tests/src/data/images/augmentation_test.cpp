// What images to learn from become, on one whose pixels are told apart.

#include "src/io/images/augmentation.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <span>
#include <vector>

#include "src/io/images/image_pipeline.h"
#include "tests/src/data/images/golden_images.h"

namespace spillway::test {
namespace {

constexpr nets::Shape kShown{.channels = 3, .height = 16, .width = 16};

using Numbers = std::vector<float>;

ImagePipeline pipeline_of(const Augmentation& augmentation, const nets::Shape& image = kShown) {
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
  for (std::size_t row = 0; row < image.size(); row += kShown.width) {
    std::ranges::reverse(std::span{image}.subspan(row, kShown.width));
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
    EXPECT_LE(count, 95U);  // 33 % of 256, and rounding
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

// The hue turns, and neither the largest nor the smallest colour of a pixel changes.
TEST(Augmentation, TurnsTheHueAlone) {
  const ImagePipeline pipeline{
      kShown, {.augmentation = {.hue = 0.5F}, .mean = {0, 0, 0}, .deviation = {1, 1, 1}}};
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

}  // namespace
}  // namespace spillway::test
