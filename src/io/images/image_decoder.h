#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "nets/shape.h"
#include "src/io/images/crop.h"

namespace spillway {

/// How to make an image upright that is stored turned or mirrored. The upright pixel (y, x) is
/// stored in row y and column x, or with both exchanged, each counted from either end.
struct Orientation {
  bool exchanges_sides = false;  ///< stored in row x and column y
  bool mirrors_rows = false;     ///< rows are counted from the last stored one
  bool mirrors_columns = false;  ///< columns are counted from the last stored one
  friend bool operator==(const Orientation&, const Orientation&) = default;
};

/// Size of the upright image. The function is its own inverse.
[[nodiscard]] nets::Extent upright_extent(const Orientation& orientation,
                                          const nets::Extent& stored);

/// Returns the same part of the stored image. Requires: a crop of the upright image.
[[nodiscard]] Crop stored_crop(const Orientation& orientation, const nets::Extent& stored,
                               const Crop& upright);

/// Returns the pixels of `stored`, (height, width, kPixelBytes), in their upright places.
[[nodiscard]] std::vector<std::uint8_t> upright_pixels(const Orientation& orientation,
                                                       const nets::Extent& stored,
                                                       std::vector<std::uint8_t> pixels);

/// Reads the orientation from the first EXIF segment of a JPEG file, as Pillow's exif_transpose()
/// does. Returns upright if the EXIF data are missing or broken. Reads only the file's headers.
[[nodiscard]] Orientation exif_orientation(std::span<const std::byte> jpeg);

/// Bytes of a decoded pixel: red, green, blue and one unused.
inline constexpr std::size_t kPixelBytes = 4;

/// Larger images are refused before decoding, as some rows are held whole.
inline constexpr std::size_t kMostPixels = std::size_t{1} << 26U;
inline constexpr std::size_t kLongestSide = 65'535;  ///< a JPEG's have no more

/// The pixels of columns [left, right) in rows [top, bottom).
struct PixelRange {
  std::size_t left = 0;
  std::size_t top = 0;
  std::size_t right = 0;
  std::size_t bottom = 0;
};

/// Decodes one image file: its size immediately, its pixels on demand.
///
/// Thread safety: none.
class ImageDecoder {
 public:
  virtual ~ImageDecoder() = default;
  ImageDecoder(const ImageDecoder&) = delete;
  ImageDecoder& operator=(const ImageDecoder&) = delete;

  /// Size of the stored image.
  [[nodiscard]] virtual nets::Extent extent() const = 0;
  /// How the image is stored; this class does not apply it.
  [[nodiscard]] virtual Orientation orientation() const { return {}; }
  /// Chooses the smallest scale, in eighths, at which each side is at least `least` of the
  /// original. Returns the scale; 8 for formats without scales. Requires: 0 < least.
  [[nodiscard]] virtual unsigned shrink(double least) = 0;
  /// Size of the image at that scale.
  [[nodiscard]] virtual nets::Extent scaled_extent() const = 0;
  /// Passes the rows of `range`, from top to bottom, to `on_row`, kPixelBytes a pixel.
  /// Requires: a range within scaled_extent(), not empty; called only once.
  /// Throws: um::Error such as "is cut short", a text to put after the file's name.
  virtual void decode(const PixelRange& range,
                      const std::function<void(const std::uint8_t*)>& on_row) = 0;

 protected:
  ImageDecoder() = default;
};

/// Opens a JPEG or PNG file, told apart by content. `file` outlives the decoder. Transparency is
/// dropped and 16 bits a channel become 8. Grey, palettes, CMYK and YCCK become RGB.
/// Throws: um::Error: "is neither JPEG nor PNG", "has 40000x40000 pixels, more than ...".
[[nodiscard]] std::unique_ptr<ImageDecoder> open_image(std::span<const std::byte> file);

/// Opens a JPEG file as open_image() does. Pixels are those of libjpeg-turbo's accurate integer
/// transform. A part of an image has the same pixels as in the whole.
[[nodiscard]] std::unique_ptr<ImageDecoder> open_jpeg(std::span<const std::byte> file);

/// Opens a PNG file as open_image() does.
[[nodiscard]] std::unique_ptr<ImageDecoder> open_png(std::span<const std::byte> file);

/// Throws: um::Error if an image of this extent is too large to decode.
void expect_decodable(const nets::Extent& extent);

}  // namespace spillway
