// Decoded, cropped and resized images compared with those of Pillow and torchvision.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <span>
#include <string>
#include <vector>

#include "src/io/images/augmentation.h"
#include "src/io/images/crop.h"
#include "src/io/images/image_decoder.h"
#include "src/io/images/image_pipeline.h"
#include "tests/src/io/images/image_files.h"

namespace spillway::test {
namespace {

using nlohmann::json;

// The difference from Pillow, in levels of 0 to 255.
struct Distance {
  int most = 0;
  double mean = 0;
};

Distance distance(const std::vector<std::uint8_t>& ours, const FileContent& theirs) {
  Distance result;
  EXPECT_EQ(ours.size() / kPixelBytes * 3, theirs.size());
  for (std::size_t i = 0; i < theirs.size(); ++i) {
    const int level = ours[i / 3 * kPixelBytes + i % 3];
    const int apart = std::abs(level - static_cast<int>(theirs[i]));
    result.most = std::max(result.most, apart);
    result.mean += apart / static_cast<double>(theirs.size());
  }
  return result;
}

std::vector<std::uint8_t> decoded(const std::string& name, const Crop& crop, Reduction reduction) {
  const FileContent file = golden_image(name);
  return decode_crop(
      std::as_bytes(std::span{file}), [&](const auto&) { return crop; }, reduction);
}

// Returns the crop {top, left, height, width}, resized to `side` x `side`.
Crop crop_of(const json& crop, std::size_t side) {
  const nets::Extent shown = nets::square(side);
  return {.left = crop[1],
          .top = crop[0],
          .part = {.height = crop[2], .width = crop[3]},
          .resized = shown,
          .shown = shown};
}

Crop whole(const json& file) {
  const nets::Extent extent{.height = file["height"], .width = file["width"]};
  return {.part = extent, .resized = extent, .shown = extent};
}

bool is_png(const std::string& name) { return name.ends_with(".png"); }

// Pillow 13 resizes the height of crops that are higher than wide first: rounding may differ by one
// level.
TEST(DecodeGolden, PngsAreThoseOfPillowBitForBit) {
  const json golden = golden_numbers();
  const std::size_t side = golden["shown"];
  int files = 0;
  for (const auto& [name, file] : golden["files"].items()) {
    if (!is_png(name)) continue;
    ++files;
    const auto expect_same = [&, at = name](const Crop& crop, const json& pixels) {
      const int most = crop.part.height > crop.part.width ? 1 : 0;
      EXPECT_LE(distance(decoded(at, crop, Reduction::kClose), bytes_of(pixels)).most, most) << at;
    };
    const Crop all = whole(file);
    expect_same(all, file["pixels"]);
    expect_same(central_crop(all.part, nets::square(side), 16.0F / 18.0F), file["shown"]);
    for (const json& crop : file["crops"]) expect_same(crop_of(crop["crop"], side), crop["pixels"]);
  }
  EXPECT_EQ(files, 8);
}

// Versions of libjpeg-turbo may differ by one level. Images that are reduced during decoding get
// some fine detail from another filter.
TEST(DecodeGolden, JpegsAreCloseToThoseOfPillow) {
  const json golden = golden_numbers();
  const std::size_t side = golden["shown"];
  int files = 0;
  for (const auto& [name, file] : golden["files"].items()) {
    if (is_png(name)) continue;
    ++files;
    const Crop all = whole(file);
    if (file["pixels"] != "") {
      EXPECT_LE(distance(decoded(name, all, Reduction::kClose), bytes_of(file["pixels"])).most, 1)
          << name;
    }
    const Crop shown = central_crop(all.part, nets::square(side), 16.0F / 18.0F);
    const Distance fine = distance(decoded(name, shown, Reduction::kFine), bytes_of(file["shown"]));
    EXPECT_LE(fine.mean, 1.0) << name;
    EXPECT_LE(fine.most, 8) << name;
    const Distance close =
        distance(decoded(name, shown, Reduction::kClose), bytes_of(file["shown"]));
    EXPECT_LE(close.mean, 3.0) << name;
    for (const json& crop : file["crops"]) {
      const Distance cut = distance(decoded(name, crop_of(crop["crop"], side), Reduction::kFine),
                                    bytes_of(crop["pixels"]));
      EXPECT_LE(cut.most, 1) << name;
    }
  }
  EXPECT_EQ(files, 6);
}

// Unneeded rows and columns are not decoded; this does not change the others.
TEST(DecodeGolden, PartOfAJpegIsThatOfTheWhole) {
  for (const std::string name : {"usual.jpg", "full-color.jpg", "progressive.jpg", "cmyk.jpg"}) {
    const FileContent file = golden_image(name);
    for (const double least : {1.0, 0.5, 0.25, 0.125}) {
      const auto rows_of = [&](const PixelRange* part) {
        const auto decoder = open_image(std::as_bytes(std::span{file}));
        static_cast<void>(decoder->shrink(least));
        const auto [height, width] = decoder->scaled_extent();
        const PixelRange range = part ? *part : PixelRange{0, 0, width, height};
        std::vector<std::vector<std::uint8_t>> rows;
        decoder->decode(range, [&](const std::uint8_t* row) {
          rows.emplace_back(row, row + (range.right - range.left) * kPixelBytes);
        });
        return rows;
      };
      const PixelRange part{.left = 3, .top = 2, .right = 9, .bottom = 7};
      const auto all = rows_of(nullptr);
      const auto some = rows_of(&part);
      ASSERT_EQ(some.size(), 5U);
      for (std::size_t y = 0; y < some.size(); ++y) {
        for (std::size_t i = 0; i < some[y].size(); ++i) {
          if (i % kPixelBytes == 3) continue;
          ASSERT_EQ(some[y][i], all[y + part.top][i + part.left * kPixelBytes])
              << name << " at " << least << ", row " << y << ", byte " << i;
        }
      }
    }
  }
}

TEST(ImagePipelineGolden, EvaluatesAsTorchvisionsRecipe) {
  const json golden = golden_numbers();
  const FileContent file = golden_image("rgb.png");
  const ImagePipeline pipeline{{.channels = 3, .height = 16, .width = 16},
                               {.eval_crop = 16.0F / 18.0F}};
  std::vector<float> image(3 * 16 * 16);
  pipeline.evaluate(std::as_bytes(std::span{file}), image);
  for (std::size_t i = 0; i < image.size(); ++i) {
    ASSERT_NEAR(image[i], golden["standardised"][i].get<float>(), 1e-6) << i;
  }
}

TEST(ColorJitterGolden, AdjustsAsTorchvision) {
  const json colors = golden_numbers()["colors"];
  for (const json& adjusted : colors["adjusted"]) {
    const std::string name = adjusted["property"];
    const ColorProperty property = name == "brightness" ? ColorProperty::kBrightness
                                   : name == "contrast" ? ColorProperty::kContrast
                                   : name == "hue"      ? ColorProperty::kHue
                                                        : ColorProperty::kSaturation;
    auto image = colors["image"].get<std::vector<float>>();
    adjust(property, adjusted["factor"], image);
    for (std::size_t i = 0; i < image.size(); ++i) {
      EXPECT_NEAR(image[i], adjusted["image"][i].get<float>(), 1e-6) << name << ' ' << i;
    }
  }
}

}  // namespace
}  // namespace spillway::test
