#include "src/io/images/image_decoder.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include "um/error.h"

namespace spillway {
namespace {

constexpr std::array<std::uint8_t, 3> kJpegMagic{0xFF, 0xD8, 0xFF};
constexpr std::array<std::uint8_t, 8> kPngMagic{0x89, 'P', 'N', 'G', '\r', '\n', 0x1A, '\n'};

bool begins_with(std::span<const std::byte> file, std::span<const std::uint8_t> magic) {
  return file.size() >= magic.size() &&
         std::ranges::equal(file.first(magic.size()), std::as_bytes(magic));
}

using ByteSpan = std::span<const std::byte>;

enum class ByteOrder : std::uint8_t { kBig, kLittle };

// Returns a number of `count` bytes, or nothing where the data end before.
std::optional<std::uint32_t> number_at(ByteSpan bytes, std::size_t at, std::size_t count,
                                       ByteOrder order) {
  if (at > bytes.size() || count > bytes.size() - at) return std::nullopt;
  std::uint32_t number = 0;
  for (std::size_t i = 0; i < count; ++i) {
    const std::size_t place = order == ByteOrder::kBig ? i : count - 1 - i;
    number = number << 8U | std::to_integer<std::uint32_t>(bytes[at + place]);
  }
  return number;
}

bool is_without_content(std::uint32_t marker) {
  return marker == 0x01 || (0xD0 <= marker && marker <= 0xD8);
}

// Returns the TIFF data in the first EXIF segment before the image; empty if there are none.
ByteSpan find_exif(ByteSpan jpeg) {
  constexpr std::uint32_t kApp1 = 0xE1;
  constexpr std::uint32_t kStartOfScan = 0xDA;
  constexpr std::uint32_t kEnd = 0xD9;
  constexpr std::array<std::uint8_t, 6> kExif{'E', 'x', 'i', 'f', 0, 0};
  for (std::size_t at = 0; const auto begin = number_at(jpeg, at, 2, ByteOrder::kBig);) {
    const std::uint32_t marker = *begin & 0xFFU;
    if (*begin >> 8U != 0xFFU || marker == kStartOfScan || marker == kEnd) break;
    if (marker == 0xFFU || is_without_content(marker)) {
      at += marker == 0xFFU ? 1 : 2;
      continue;
    }
    const auto length = number_at(jpeg, at + 2, 2, ByteOrder::kBig);
    if (!length || *length < 2 || *length > jpeg.size() - at - 2) break;
    const ByteSpan content = jpeg.subspan(at + 4, *length - 2);
    if (marker == kApp1 && content.size() >= kExif.size() &&
        std::ranges::equal(content.first(kExif.size()), std::as_bytes(std::span{kExif}))) {
      return content.subspan(kExif.size());
    }
    at += 2 + *length;
  }
  return {};
}

std::optional<ByteOrder> byte_order(ByteSpan tiff) {
  const auto name = number_at(tiff, 0, 2, ByteOrder::kBig);
  if (name == 0x4949U) return ByteOrder::kLittle;
  if (name == 0x4D4DU) return ByteOrder::kBig;
  return std::nullopt;
}

// Returns the orientation tag of the first directory.
std::optional<std::uint32_t> orientation_tag(ByteSpan tiff) {
  constexpr std::uint32_t kOrientation = 0x0112;
  constexpr std::uint32_t kShort = 3;
  constexpr std::uint32_t kLong = 4;
  constexpr std::size_t kEntry = 12;  // bytes
  const auto order = byte_order(tiff);
  if (!order || number_at(tiff, 2, 2, *order) != 42U) return std::nullopt;
  const auto directory = number_at(tiff, 4, 4, *order);
  const auto count = directory ? number_at(tiff, *directory, 2, *order) : std::nullopt;
  for (std::size_t i = 0; count && i < *count; ++i) {
    const std::size_t entry = std::size_t{*directory} + 2 + i * kEntry;
    const auto tag = number_at(tiff, entry, 2, *order);
    if (!tag) break;
    if (*tag != kOrientation) continue;
    const auto type = number_at(tiff, entry + 2, 2, *order);
    if (type == kShort) return number_at(tiff, entry + 8, 2, *order);
    if (type == kLong) return number_at(tiff, entry + 8, 4, *order);
    break;
  }
  return std::nullopt;
}

}  // namespace

std::unique_ptr<ImageDecoder> open_image(std::span<const std::byte> file) {
  if (file.empty()) throw um::Error{"is empty"};
  if (begins_with(file, kJpegMagic)) return open_jpeg(file);
  if (begins_with(file, kPngMagic)) return open_png(file);
  throw um::Error{"is neither JPEG nor PNG"};
}

void expect_decodable(const nets::Extent& extent) {
  const bool has_few =
      extent.height > 0 && extent.width > 0 && extent.width <= kMostPixels / extent.height;
  if (has_few && extent.height <= kLongestSide && extent.width <= kLongestSide) return;
  throw um::Error{"has " + std::to_string(extent.width) + "x" + std::to_string(extent.height) +
                  " pixels, but " +
                  (has_few ? "sides of at most " + std::to_string(kLongestSide)
                           : "1 to " + std::to_string(kMostPixels)) +
                  " are decoded"};
}

nets::Extent upright_extent(const Orientation& orientation, const nets::Extent& stored) {
  return orientation.exchanges_sides ? nets::Extent{.height = stored.width, .width = stored.height}
                                     : stored;
}

Crop stored_crop(const Orientation& orientation, const nets::Extent& stored, const Crop& upright) {
  Crop crop = upright;
  if (orientation.exchanges_sides) {
    std::swap(crop.left, crop.top);
    std::swap(crop.shown_left, crop.shown_top);
    for (nets::Extent* const extent : {&crop.part, &crop.resized, &crop.shown}) {
      std::swap(extent->height, extent->width);
    }
  }
  if (orientation.mirrors_rows) {
    crop.top = stored.height - crop.top - crop.part.height;
    crop.shown_top = crop.resized.height - crop.shown_top - crop.shown.height;
  }
  if (orientation.mirrors_columns) {
    crop.left = stored.width - crop.left - crop.part.width;
    crop.shown_left = crop.resized.width - crop.shown_left - crop.shown.width;
  }
  return crop;
}

std::vector<std::uint8_t> upright_pixels(const Orientation& orientation, const nets::Extent& stored,
                                         std::vector<std::uint8_t> pixels) {
  um::expects(pixels.size() == stored.height * stored.width * kPixelBytes, "pixels of an image");
  if (orientation == Orientation{}) return pixels;
  const nets::Extent upright = upright_extent(orientation, stored);
  std::vector<std::uint8_t> result(pixels.size());
  for (std::size_t y = 0; y < upright.height; ++y) {
    for (std::size_t x = 0; x < upright.width; ++x) {
      std::size_t row = orientation.exchanges_sides ? x : y;
      std::size_t column = orientation.exchanges_sides ? y : x;
      if (orientation.mirrors_rows) row = stored.height - 1 - row;
      if (orientation.mirrors_columns) column = stored.width - 1 - column;
      std::copy_n(&pixels[(row * stored.width + column) * kPixelBytes], kPixelBytes,
                  &result[(y * upright.width + x) * kPixelBytes]);
    }
  }
  return result;
}

// Orientations are numbers of the TIFF standard, from 1.
Orientation exif_orientation(ByteSpan jpeg) {
  switch (orientation_tag(find_exif(jpeg)).value_or(1)) {
    case 2:
      return {.mirrors_columns = true};
    case 3:
      return {.mirrors_rows = true, .mirrors_columns = true};
    case 4:
      return {.mirrors_rows = true};
    case 5:
      return {.exchanges_sides = true};
    case 6:
      return {.exchanges_sides = true, .mirrors_rows = true};
    case 7:
      return {.exchanges_sides = true, .mirrors_rows = true, .mirrors_columns = true};
    case 8:
      return {.exchanges_sides = true, .mirrors_columns = true};
    default:
      return {};
  }
}

}  // namespace spillway
