#include "src/io/images/image_decoder.h"

#include <algorithm>
#include <array>
#include <string>

#include "um/error.h"

namespace spillway {
namespace {

constexpr std::array<std::uint8_t, 3> kJpegMagic{0xFF, 0xD8, 0xFF};
constexpr std::array<std::uint8_t, 8> kPngMagic{0x89, 'P', 'N', 'G', '\r', '\n', 0x1A, '\n'};

bool begins_with(std::span<const std::byte> file, std::span<const std::uint8_t> magic) {
  return file.size() >= magic.size() &&
         std::ranges::equal(file.first(magic.size()), std::as_bytes(magic));
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

}  // namespace spillway
