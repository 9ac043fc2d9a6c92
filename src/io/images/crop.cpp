#include "src/io/images/crop.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "src/io/images/image_decoder.h"
#include "um/error.h"
#include "um/machine/wide.h"

namespace spillway {
namespace {

constexpr int kCropTries = 10;

// Returns half of `pixels`, rounded to even where two are equally close.
std::size_t half(std::size_t pixels) {
  const std::size_t below = pixels / 2;
  return pixels % 2 == 1 && below % 2 == 1 ? below + 1 : below;
}

// Draws an integer in [0, count).
std::size_t drawn_below(std::size_t count, Random& random) {
  return std::min(count - 1,
                  static_cast<std::size_t>(random.uniform() * static_cast<float>(count)));
}

// Returns the largest part in the middle that is `least` to `most` times as wide as high.
Crop middle(const nets::Extent& image, const nets::Extent& shown, double least, double most) {
  const auto height = static_cast<double>(image.height);
  const auto width = static_cast<double>(image.width);
  nets::Extent part = image;
  if (width < least * height) part.height = static_cast<std::size_t>(std::lround(width / least));
  if (width > most * height) part.width = static_cast<std::size_t>(std::lround(height * most));
  part = {.height = std::clamp<std::size_t>(part.height, 1, image.height),
          .width = std::clamp<std::size_t>(part.width, 1, image.width)};
  return {.left = (image.width - part.width) / 2,
          .top = (image.height - part.height) / 2,
          .part = part,
          .resized = shown,
          .shown = shown};
}

/// A range of pixels that is resized to `size` pixels; `count` of these from `first` on are wanted.
struct Stretch {
  double from = 0;
  double to = 0;
  std::size_t size = 0;   ///< after resizing
  std::size_t first = 0;  ///< the first wanted pixel of the result
  std::size_t count = 0;  ///< wanted pixels
};

/// Source pixels and weights of each pixel of a stretch: a triangle as wide as two pixels of the
/// result, or of the image if that is larger. Both equal those of Pillow's Image.resize() with
/// BILINEAR.
class ResampleAxis {
 public:
  static constexpr int kWeightBits = 22;  ///< weights are integers with a sum of about 2^22

  /// Pixels outside the stretch have no weight. Requires: 0 <= from < to; count > 0.
  explicit ResampleAxis(const Stretch& stretch);

  /// The range of source pixels that are needed: [begin(), end()).
  [[nodiscard]] std::size_t begin() const { return begin_; }
  [[nodiscard]] std::size_t end() const { return end_; }
  /// Number of pixels of the result.
  [[nodiscard]] std::size_t size() const { return taps_.size(); }
  /// The first source pixel of pixel `i` of the result, counted from begin().
  [[nodiscard]] std::size_t first(std::size_t i) const { return taps_[i].pixel - begin_; }
  [[nodiscard]] std::span<const std::int32_t> weights(std::size_t i) const {
    return std::span{weights_}.subspan(taps_[i].weight, taps_[i].count);
  }

 private:
  struct Taps {
    std::size_t pixel;   // the first one
    std::size_t weight;  // the first weight, in weights_
    std::size_t count;
  };

  std::vector<Taps> taps_;
  std::vector<std::int32_t> weights_;
  std::size_t begin_ = 0;
  std::size_t end_ = 0;
};

double triangle(double x) { return std::max(0.0, 1.0 - std::abs(x)); }

// Pillow crops an image before it resizes it. Pixels therefore count from the stretch's first one.
ResampleAxis::ResampleAxis(const Stretch& stretch) {
  const auto& [from, to, size, first, count] = stretch;
  um::expects(0 <= from && from < to && count > 0 && first + count <= size, "a stretch of pixels");
  const double origin = std::floor(from);
  const double begin = from - origin;
  const double last = std::ceil(to) - origin;
  const double scale = (to - from) / static_cast<double>(size);
  const double reach = std::max(scale, 1.0);
  std::vector<double> weights;
  for (std::size_t i = first; i < first + count; ++i) {
    const double centre = begin + (static_cast<double>(i) + 0.5) * scale;
    const double least = std::trunc(std::max(centre - reach + 0.5, 0.0));
    const double most = std::min(std::trunc(centre + reach + 0.5), last);
    weights.clear();
    double sum = 0;
    for (double pixel = least; pixel < most; ++pixel) {
      weights.push_back(triangle((pixel - centre + 0.5) * (1.0 / reach)));
      sum += weights.back();
    }
    taps_.push_back({.pixel = static_cast<std::size_t>(origin + least),
                     .weight = weights_.size(),
                     .count = weights.size()});
    for (const double weight : weights) {
      const double share = sum == 0 ? weight : weight / sum;
      weights_.push_back(static_cast<std::int32_t>(std::lround(share * (1 << kWeightBits))));
    }
  }
  begin_ = taps_.front().pixel;
  for (const Taps& taps : taps_) end_ = std::max(end_, taps.pixel + taps.count);
}

/// Resizes an image that comes row by row: each row's width at once, the height at the end. Holds
/// all added rows at the width of the result.
class Resampler {
 public:
  Resampler(ResampleAxis columns, ResampleAxis rows);

  /// The range of source pixels that are needed.
  [[nodiscard]] PixelRange range() const;
  /// Adds the next row of range(), kPixelBytes a pixel. Requires: no more rows than range() has.
  void add(const std::uint8_t* row);
  /// Returns the image, (height, width, kPixelBytes). Requires: all rows have been added.
  [[nodiscard]] std::vector<std::uint8_t> result() const;

 private:
  ResampleAxis columns_;
  ResampleAxis rows_;
  std::vector<std::int32_t> row_;       // the current row, (width of the image, kPixelBytes)
  std::vector<std::uint8_t> narrowed_;  // (rows, width of the result, kPixelBytes)
  std::size_t added_ = 0;
};

using PixelSums [[gnu::vector_size(16)]] = std::int32_t;
using PixelValues [[gnu::vector_size(4)]] = std::uint8_t;

constexpr std::int32_t kHalf = 1 << (ResampleAxis::kWeightBits - 1);

// Weights are positive; their sum may exceed one by rounding.
std::uint8_t to_byte(std::int32_t sum) {
  return static_cast<std::uint8_t>(std::min(sum >> ResampleAxis::kWeightBits, 255));
}

SPILLWAY_WIDE void widen(const std::uint8_t* bytes, std::span<std::int32_t> numbers) {
  for (std::size_t i = 0; i < numbers.size(); ++i) numbers[i] = bytes[i];
}

// `row` has 32-bit numbers, as compilers generate poor code for vectors of four bytes.
SPILLWAY_WIDE void narrow(const ResampleAxis& columns, std::span<const std::int32_t> row,
                          std::uint8_t* result) {
  constexpr PixelSums kMost{255, 255, 255, 255};
  for (std::size_t x = 0; x < columns.size(); ++x) {
    const std::int32_t* pixel = row.data() + columns.first(x) * kPixelBytes;
    PixelSums sums{kHalf, kHalf, kHalf, kHalf};
    for (const std::int32_t weight : columns.weights(x)) {
      PixelSums values;
      std::memcpy(&values, pixel, sizeof(values));
      sums += values * weight;
      pixel += kPixelBytes;
    }
    sums >>= ResampleAxis::kWeightBits;
    sums = sums > kMost ? kMost : sums;
    const PixelValues bytes = __builtin_convertvector(sums, PixelValues);
    std::memcpy(result, &bytes, kPixelBytes);
    result += kPixelBytes;
  }
}

SPILLWAY_WIDE void add_weighted(const std::uint8_t* row, std::int32_t weight,
                                std::span<std::int32_t> sums) {
  for (std::size_t i = 0; i < sums.size(); ++i) sums[i] += row[i] * weight;
}

SPILLWAY_WIDE void to_bytes(std::span<const std::int32_t> sums, std::uint8_t* bytes) {
  for (std::size_t i = 0; i < sums.size(); ++i) bytes[i] = to_byte(sums[i]);
}

Resampler::Resampler(ResampleAxis columns, ResampleAxis rows)
    : columns_{std::move(columns)},
      rows_{std::move(rows)},
      row_((columns_.end() - columns_.begin()) * kPixelBytes),
      narrowed_((rows_.end() - rows_.begin()) * columns_.size() * kPixelBytes) {}

PixelRange Resampler::range() const {
  return {.left = columns_.begin(),
          .top = rows_.begin(),
          .right = columns_.end(),
          .bottom = rows_.end()};
}

void Resampler::add(const std::uint8_t* row) {
  um::expects(added_ < rows_.end() - rows_.begin(), "a row that is needed");
  widen(row, row_);
  narrow(columns_, row_, &narrowed_[added_ * columns_.size() * kPixelBytes]);
  ++added_;
}

std::vector<std::uint8_t> Resampler::result() const {
  um::expects(added_ == rows_.end() - rows_.begin(), "all rows");
  const std::size_t stride = columns_.size() * kPixelBytes;
  std::vector<std::uint8_t> pixels(rows_.size() * stride);
  std::vector<std::int32_t> sums(stride);
  for (std::size_t y = 0; y < rows_.size(); ++y) {
    std::ranges::fill(sums, kHalf);
    const std::uint8_t* row = &narrowed_[rows_.first(y) * stride];
    for (const std::int32_t weight : rows_.weights(y)) {
      add_weighted(row, weight, sums);
      row += stride;
    }
    to_bytes(sums, &pixels[y * stride]);
  }
  return pixels;
}

double ratio(std::size_t part, std::size_t whole) {
  return static_cast<double>(part) / static_cast<double>(whole);
}

// Returns the axis for `part` pixels from `begin` on in an image that is reduced by `scale` to
// `most` pixels. The stretch has the wanted range.
ResampleAxis scaled_axis(std::size_t begin, std::size_t part, double scale, std::size_t most,
                         Stretch stretch) {
  const auto from = static_cast<double>(begin) * scale;
  const auto end = static_cast<double>(begin + part) * scale;
  stretch.from = std::min(from, static_cast<double>(most - 1));
  stretch.to = std::min(end, static_cast<double>(most));
  return ResampleAxis{stretch};
}

}  // namespace

Crop central_crop(const nets::Extent& image, const nets::Extent& shown, float fraction) {
  um::expects(0 < fraction && fraction <= 1, "a fraction");
  const auto side = [&](std::size_t pixels) {
    return std::max<std::size_t>(
        pixels, static_cast<std::size_t>(std::lround(static_cast<float>(pixels) / fraction)));
  };
  nets::Extent resized{.height = side(shown.height), .width = side(shown.width)};
  if (image.width * resized.height <= image.height * resized.width) {
    resized.height = std::max(shown.height, image.height * resized.width / image.width);
  } else {
    resized.width = std::max(shown.width, image.width * resized.height / image.height);
  }
  return {.part = image,
          .resized = resized,
          .shown_left = half(resized.width - shown.width),
          .shown_top = half(resized.height - shown.height),
          .shown = shown};
}

Crop drawn_crop(const nets::Extent& image, const nets::Extent& shown, float least, Random& random) {
  constexpr double kNarrowest = 3.0 / 4.0;
  constexpr double kWidest = 4.0 / 3.0;
  for (int i = 0; i < kCropTries; ++i) {
    const double area = random.uniform(least, 1);
    const nets::Extent part = part_of(image, area, drawn_ratio(kNarrowest, kWidest, random));
    if (part.height == 0 || part.height > image.height) continue;
    if (part.width == 0 || part.width > image.width) continue;
    const std::size_t top = drawn_below(image.height - part.height + 1, random);
    const std::size_t left = drawn_below(image.width - part.width + 1, random);
    return {.left = left, .top = top, .part = part, .resized = shown, .shown = shown};
  }
  return middle(image, shown, kNarrowest, kWidest);
}

nets::Extent part_of(const nets::Extent& image, double area, double ratio) {
  const double pixels = area * static_cast<double>(image.height) * static_cast<double>(image.width);
  return {.height = static_cast<std::size_t>(std::lround(std::sqrt(pixels / ratio))),
          .width = static_cast<std::size_t>(std::lround(std::sqrt(pixels * ratio)))};
}

// Uses square roots, which have the same bits on all machines; logarithms and powers do not.
// Twenty-four halvings of the interval, by geometric means, leave less than a pixel of a side.
double drawn_ratio(double from, double to, Random& random) {
  const std::uint64_t draw = random.next();
  constexpr int kHalvings = 24;
  for (int i = 0; i < kHalvings; ++i) {
    double& end = (draw >> (63 - i) & 1U) != 0 ? from : to;
    end = std::sqrt(from * to);
  }
  return std::sqrt(from * to);
}

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
