#include "src/data/images/decode_crop.h"

#include <algorithm>
#include <memory>

#include "src/data/images/image_decoder.h"
#include "src/data/images/orientation.h"
#include "src/data/images/resampler.h"

namespace spillway {
namespace {

double ratio(std::size_t part, std::size_t whole) {
  return static_cast<double>(part) / static_cast<double>(whole);
}

// From `first` on, `count` of the pixels that `part` pixels from `begin` on become; all of them in
// an image of which there are eighths, `most` pixels.
ResampleAxis scaled_axis(std::size_t begin, std::size_t part, double scale, std::size_t most,
                         Stretch stretch) {
  const auto from = static_cast<double>(begin) * scale;
  const auto end = static_cast<double>(begin + part) * scale;
  stretch.from = std::min(from, static_cast<double>(most - 1));
  stretch.to = std::min(end, static_cast<double>(most));
  return ResampleAxis{stretch};
}

}  // namespace

std::vector<std::uint8_t> decode_crop(std::span<const std::byte> file, const ChooseCrop& choose,
                                      Reduction reduction) {
  const std::unique_ptr<ImageDecoder> decoder = open_image(file);
  const Orientation orientation = decoder->orientation();
  const Crop crop = stored_crop(orientation, decoder->extent(),
                                choose(upright_extent(orientation, decoder->extent())));
  const double least = std::max(ratio(crop.resized.height, crop.part.height),
                                ratio(crop.resized.width, crop.part.width));
  const double scale = decoder->shrink(reduction == Reduction::kFine ? 2 * least : least) / 8.0;
  const nets::Extent scaled = decoder->scaled_extent();
  Resampler resampler{
      scaled_axis(
          crop.left, crop.part.width, scale, scaled.width,
          {.size = crop.resized.width, .first = crop.shown_left, .count = crop.shown.width}),
      scaled_axis(
          crop.top, crop.part.height, scale, scaled.height,
          {.size = crop.resized.height, .first = crop.shown_top, .count = crop.shown.height})};
  decoder->decode(resampler.range(), [&](const std::uint8_t* row) { resampler.add(row); });
  return upright_pixels(orientation, crop.shown, resampler.result());
}

}  // namespace spillway
