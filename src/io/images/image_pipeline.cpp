#include "src/io/images/image_pipeline.h"

#include <algorithm>
#include <string>

#include "src/io/images/augmentation.h"
#include "src/io/images/crop.h"
#include "src/io/images/image_decoder.h"
#include "src/ops/narrow_floats.h"
#include "um/error.h"

namespace spillway {

std::vector<float> unit_numbers(std::size_t channels) {
  std::vector<float> numbers(channels * kByteValues);
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    numbers[i] = static_cast<float>(i % kByteValues) / 255.0F;
  }
  return numbers;
}

namespace {

constexpr std::size_t kColours = 3;

// ITU-R 601's luminance in integers, rounded as Pillow does.
std::uint8_t luminance_of(const std::uint8_t* pixel) {
  return static_cast<std::uint8_t>(
      (pixel[0] * 19595U + pixel[1] * 38470U + pixel[2] * 7471U + 0x8000U) >> 16U);
}

void exchange_sides(std::vector<std::uint8_t>& pixels, std::size_t width) {
  const std::size_t stride = width * kPixelBytes;
  for (std::size_t row = 0; row < pixels.size(); row += stride) {
    for (std::size_t x = 0; x < width / 2; ++x) {
      std::swap_ranges(&pixels[row + x * kPixelBytes], &pixels[row + (x + 1) * kPixelBytes],
                       &pixels[row + (width - 1 - x) * kPixelBytes]);
    }
  }
}

float mean_of(const std::array<float, kColours>& values) {
  return (values[0] + values[1] + values[2]) / 3;
}

}  // namespace

ImagePipeline::ImagePipeline(const nets::Shape& image, const PipelineOptions& options)
    : image_{image}, options_{options} {
  if (image.channels != 1 && image.channels != kColours) {
    throw um::Error{"images have 1 or 3 channels, but the network reads " +
                    std::to_string(image.channels)};
  }
  if (image.channels == 1) {
    options_.mean.fill(mean_of(options.mean));
    options_.deviation.fill(mean_of(options.deviation));
  }
  byte_numbers_ = unit_numbers(image.channels);
  for (std::size_t i = 0; i < byte_numbers_.size(); ++i) {
    const std::size_t c = i / kByteValues;
    byte_numbers_[i] = (byte_numbers_[i] - options_.mean[c]) / options_.deviation[c];
  }
}

void ImagePipeline::evaluate(std::span<const std::byte> file, std::span<float> image) const {
  standardise(evaluated(file), image);
}

void ImagePipeline::evaluate(std::span<const std::byte> file, std::span<std::uint8_t> image) const {
  separate(evaluated(file), image);
}

void ImagePipeline::augment(std::span<const std::byte> file, Random random,
                            std::span<float> image) const {
  const Augmentation& changes = options_.augmentation;
  const Pixels pixels = cropped(file, random);
  if (changes.color_jitter > 0 || changes.hue > 0) {
    standardise_jittered(pixels, random, image);
  } else {
    standardise(pixels, image);
  }
  if (random.uniform() < changes.erase) erase(random, image);
}

void ImagePipeline::augment(std::span<const std::byte> file, Random random,
                            std::span<std::uint8_t> image) const {
  um::expects(augments_bytes(), "an augmentation of bytes");
  separate(cropped(file, random), image);
}

bool ImagePipeline::augments_bytes() const {
  const Augmentation& changes = options_.augmentation;
  return changes.color_jitter <= 0 && changes.hue <= 0 && changes.erase <= 0;
}

ImagePipeline::Pixels ImagePipeline::evaluated(std::span<const std::byte> file) const {
  return decode_crop(
      file,
      [&](const nets::Extent& whole) { return central_crop(whole, extent(), options_.eval_crop); },
      Reduction::kFine);
}

// Returns a training image before colour jitter and erasing.
ImagePipeline::Pixels ImagePipeline::cropped(std::span<const std::byte> file,
                                             Random& random) const {
  const Augmentation& changes = options_.augmentation;
  Pixels pixels = decode_crop(
      file,
      [&](const nets::Extent& whole) {
        return changes.least_area > 0 ? drawn_crop(whole, extent(), changes.least_area, random)
                                      : central_crop(whole, extent(), options_.eval_crop);
      },
      Reduction::kClose);
  if (random.uniform() < changes.flip) exchange_sides(pixels, image_.width);
  return pixels;
}

// Copies (H, W, kPixelBytes) to (C, H, W).
void ImagePipeline::separate(const Pixels& pixels, std::span<std::uint8_t> image) const {
  const std::size_t plane = image_.height * image_.width;
  um::expects(image.size() == image_.elements() && pixels.size() == plane * kPixelBytes,
              "room for an image");
  for (std::size_t c = 0; c < image_.channels; ++c) {
    std::uint8_t* const out = &image[c * plane];
    if (image_.channels == 1) {
      for (std::size_t i = 0; i < plane; ++i) out[i] = luminance_of(&pixels[i * kPixelBytes]);
    } else {
      for (std::size_t i = 0; i < plane; ++i) out[i] = pixels[i * kPixelBytes + c];
    }
  }
}

void ImagePipeline::standardise(const Pixels& pixels, std::span<float> image) const {
  Pixels bytes(image.size());
  separate(pixels, bytes);
  look_up(bytes, byte_numbers_, image);
}

void ImagePipeline::standardise_jittered(const Pixels& pixels, Random& random,
                                         std::span<float> image) const {
  const std::size_t plane = image_.height * image_.width;
  std::vector<float> colours(kColours * plane);
  for (std::size_t c = 0; c < kColours; ++c) {
    for (std::size_t i = 0; i < plane; ++i) {
      colours[c * plane + i] = static_cast<float>(pixels[i * kPixelBytes + c]) / 255.0F;
    }
  }
  jitter_colors({.strength = options_.augmentation.color_jitter, .hue = options_.augmentation.hue},
                random, colours);
  for (std::size_t i = 0; i < image.size(); ++i) {
    const std::size_t c = i / plane;
    float value = colours[i];
    if (image_.channels == 1) {
      value = 0.299F * colours[i] + 0.587F * colours[plane + i] + 0.114F * colours[2 * plane + i];
    }
    image[i] = (value - options_.mean[c]) / options_.deviation[c];
  }
}

// Sets a random rectangle to the mean, as torchvision's RandomErasing with its defaults: 2 to 33 %
// of the area, 0.3 to 3.3 times as wide as high. Tries up to ten rectangles until one fits.
void ImagePipeline::erase(Random& random, std::span<float> image) const {
  for (int i = 0; i < 10; ++i) {
    const double area = random.uniform(0.02F, 0.33F);
    const nets::Extent part = part_of(extent(), area, drawn_ratio(0.3, 3.3, random));
    const float top_draw = random.uniform();
    const float left_draw = random.uniform();
    if (part.height >= image_.height || part.width >= image_.width) continue;
    const auto place = [](float draw, std::size_t room) {
      return std::min(room, static_cast<std::size_t>(draw * static_cast<float>(room + 1)));
    };
    const std::size_t top = place(top_draw, image_.height - part.height);
    const std::size_t left = place(left_draw, image_.width - part.width);
    for (std::size_t line = 0; line < image_.channels * part.height; ++line) {
      const std::size_t row = line / part.height * image_.height + top + line % part.height;
      std::fill_n(&image[row * image_.width + left], part.width, 0.0F);
    }
    return;
  }
}

}  // namespace spillway
