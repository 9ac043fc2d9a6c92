#include <gtest/gtest.h>

#include <array>
#include <span>
#include <string>
#include <vector>

#include "src/io/images/crop.h"
#include "src/io/images/image_decoder.h"
#include "tests/src/io/images/image_files.h"

namespace spillway::test {
namespace {

using nlohmann::json;

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
