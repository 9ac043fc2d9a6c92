#include "src/io/images/crop.h"

#include <algorithm>
#include <cmath>

#include "um/error.h"

namespace spillway {
namespace {

constexpr int kTries = 10;

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
  for (int i = 0; i < kTries; ++i) {
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

}  // namespace spillway
