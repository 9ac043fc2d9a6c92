// Decoded, cropped and resized images compared with those of Pillow and torchvision.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
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

Orientation orientation_of(const FileContent& file) {
  return exif_orientation(std::as_bytes(std::span{file}));
}

TEST(Exif, TellsTheOrientationInEitherByteOrder) {
  const FileContent file = golden_image("usual.jpg");
  EXPECT_EQ(orientation_of(file), Orientation{});
  for (const auto order : {TiffOrder::kBig, TiffOrder::kLittle}) {
    EXPECT_EQ(orientation_of(with_orientation(file, 1, order)), Orientation{});
    EXPECT_EQ(orientation_of(with_orientation(file, 3, order)),
              (Orientation{.mirrors_rows = true, .mirrors_columns = true}));
    EXPECT_EQ(orientation_of(with_orientation(file, 6, order)),
              (Orientation{.exchanges_sides = true, .mirrors_rows = true}));
    for (const unsigned nonsense : {0U, 9U, 65535U}) {
      EXPECT_EQ(orientation_of(with_orientation(file, nonsense, order)), Orientation{});
    }
  }
}

TEST(Exif, IsThatOfTheFirstSegmentOfSuchData) {
  const FileContent file = golden_image("usual.jpg");
  EXPECT_EQ(orientation_of(with_orientation(with_orientation(file, 3), 6)),
            orientation_of(with_orientation(file, 6)));
  FileContent other{0xFF, 0xD8, 0xFF, 0xE1, 0, 6, 'h', 't', 't', 'p'};  // the beginning of XMP
  const FileContent turned = with_orientation(file, 8);
  other.insert(other.end(), turned.begin() + 2, turned.end());
  EXPECT_EQ(orientation_of(other), orientation_of(turned));
}

// Files that are cut or changed at any byte give some orientation, or upright.
TEST(Exif, ReadsNothingThatIsNotThere) {
  FileContent file = with_orientation(golden_image("usual.jpg"), 6);
  file.resize(60);
  for (std::size_t size = 0; size < file.size(); ++size) {
    const FileContent cut{file.begin(), file.begin() + static_cast<std::ptrdiff_t>(size)};
    const bool is_whole = size >= 2 + kExifBytes;
    EXPECT_EQ(orientation_of(cut) == orientation_of(file), is_whole) << size;
  }
  int upright = 0;
  for (std::size_t i = 0; i < 2 + kExifBytes; ++i) {
    for (const std::uint8_t value : std::array<std::uint8_t, 3>{0x00, 0x7F, 0xFF}) {
      FileContent changed = file;
      changed[i] = value;
      upright += orientation_of(changed) == Orientation{} ? 1 : 0;
    }
  }
  EXPECT_GT(upright, 40);
}

// Pillow turns the image before it resizes it, which rounds differently.
TEST(Exif, TurnsImagesAsPillowDoes) {
  const json golden = golden_numbers()["orientations"];
  const json& at = golden["crop"];
  const nets::Extent shown{.height = golden["size"][0], .width = golden["size"][1]};
  const Crop crop{.left = at[1],
                  .top = at[0],
                  .part = {.height = at[2], .width = at[3]},
                  .resized = shown,
                  .shown = shown};
  for (unsigned number = 1; number <= 8; ++number) {
    const FileContent file = with_orientation(golden_image("usual.jpg"), number);
    const std::vector<std::uint8_t> ours = decode_crop(
        std::as_bytes(std::span{file}),
        [&](const nets::Extent& whole) {
          const nets::Extent expected = number < 5 ? nets::Extent{.height = 70, .width = 96}
                                                   : nets::Extent{.height = 96, .width = 70};
          EXPECT_EQ(whole, expected);
          return crop;
        },
        Reduction::kFine);
    const FileContent theirs = bytes_of(golden["shown"][std::to_string(number)]);
    ASSERT_EQ(ours.size() / kPixelBytes * 3, theirs.size());
    for (std::size_t i = 0; i < theirs.size(); ++i) {
      const int level = ours[i / 3 * kPixelBytes + i % 3];
      ASSERT_LE(std::abs(level - static_cast<int>(theirs[i])), 2) << number << ", byte " << i;
    }
  }
}

// A crop with only a part shown, away from the edges.
TEST(Orientation, ShowsTheSamePartOfAnImageHoweverItIsStored) {
  const Crop crop{.left = 5,
                  .top = 3,
                  .part = {.height = 20, .width = 30},
                  .resized = {.height = 10, .width = 12},
                  .shown_left = 4,
                  .shown_top = 1,
                  .shown = {.height = 6, .width = 5}};
  const nets::Extent stored{.height = 50, .width = 80};
  const Orientation quarter{.exchanges_sides = true, .mirrors_rows = true};
  EXPECT_EQ(upright_extent(quarter, stored), (nets::Extent{.height = 80, .width = 50}));
  const Crop turned = stored_crop(quarter, stored, crop);
  EXPECT_EQ(turned.part, (nets::Extent{.height = 30, .width = 20}));
  EXPECT_EQ(turned.left, 3U);
  EXPECT_EQ(turned.top, 50U - 5 - 30);
  EXPECT_EQ(turned.resized, (nets::Extent{.height = 12, .width = 10}));
  EXPECT_EQ(turned.shown_left, 1U);
  EXPECT_EQ(turned.shown_top, 12U - 4 - 5);
}

}  // namespace
}  // namespace spillway::test
