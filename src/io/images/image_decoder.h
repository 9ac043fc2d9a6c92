#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>

#include "nets/shape.h"
#include "src/io/images/orientation.h"

namespace spillway {

/// Bytes of a decoded pixel: red, green, blue, and one that means nothing.
inline constexpr std::size_t kPixelBytes = 4;

/// Images of more pixels, or of longer sides, are refused before anything is decoded: some rows are
/// held whole.
inline constexpr std::size_t kMostPixels = std::size_t{1} << 26U;
inline constexpr std::size_t kLongestSide = 65'535;  ///< a JPEG's have no more

/// The pixels of columns [left, right) in rows [top, bottom).
struct PixelRange {
  std::size_t left = 0;
  std::size_t top = 0;
  std::size_t right = 0;
  std::size_t bottom = 0;
};

/// One image file: its size at once, its pixels when they are asked for.
///
/// Thread safety: none.
class ImageDecoder {
 public:
  virtual ~ImageDecoder() = default;
  ImageDecoder(const ImageDecoder&) = delete;
  ImageDecoder& operator=(const ImageDecoder&) = delete;

  /// Of the image in the file.
  [[nodiscard]] virtual nets::Extent extent() const = 0;
  /// How it is stored, of which nothing here takes notice.
  [[nodiscard]] virtual Orientation orientation() const { return {}; }
  /// Chooses the smallest scale, in eighths, at which a side of the image is still at least `least`
  /// of its own, and returns it: 8 where the format has no scales. Requires: 0 < least.
  [[nodiscard]] virtual unsigned shrink(double least) = 0;
  /// Of the image at that scale.
  [[nodiscard]] virtual nets::Extent scaled_extent() const = 0;
  /// Gives the rows of `range`, from top to bottom, to `on_row`, kPixelBytes a pixel.
  /// Requires: a range within scaled_extent(), not empty; to be called once.
  /// Throws: um::Error: "is cut short", a cause that goes behind the file's name.
  virtual void decode(const PixelRange& range,
                      const std::function<void(const std::uint8_t*)>& on_row) = 0;

 protected:
  ImageDecoder() = default;
};

/// The decoder of a JPEG or PNG file, told by its content. `file` outlives it. Transparency is
/// dropped, 16 bits a channel become 8, and grey, palettes, CMYK and YCCK become RGB.
/// Throws: um::Error: "is neither JPEG nor PNG", "has 40000x40000 pixels, more than ...".
[[nodiscard]] std::unique_ptr<ImageDecoder> open_image(std::span<const std::byte> file);

/// Throws: um::Error unless an image of this extent may be decoded.
void expect_decodable(const nets::Extent& extent);

}  // namespace spillway
