#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "nets/shape.h"
#include "src/io/images/augmentation.h"
#include "src/io/random.h"

namespace spillway {

/// How an image is prepared for the network.
struct PipelineOptions {
  Augmentation augmentation;  ///< of training images
  float eval_crop = 1;        ///< central_crop()'s fraction for other images
  std::array<float, 3> mean{0.485F, 0.456F, 0.406F};  ///< subtracted; the default is ImageNet's
  std::array<float, 3> deviation{0.229F, 0.224F, 0.225F};  ///< divided by
};

/// Turns image files into input of a network: decodes, crops, resizes, augments and standardises.
/// Decodes JPEG at the smallest scale that needs no enlarging afterwards.
///
/// Thread safety: any number of threads may use one pipeline at once.
class ImagePipeline {
 public:
  /// Throws: um::Error unless `image` has three channels, or one for luminance.
  ImagePipeline(const nets::Shape& image, const PipelineOptions& options);

  [[nodiscard]] const nets::Shape& image() const { return image_; }
  /// Writes the image in `file` as an evaluation sees it, (C, H, W). Throws: as open_image().
  void evaluate(std::span<const std::byte> file, std::span<float> image) const;
  /// Writes the image as training sees it, a function only of `file` and `random`. Throws: as
  /// open_image().
  void augment(std::span<const std::byte> file, Random random, std::span<float> image) const;

  /// Writes the same as bytes; byte_numbers() has the number that each byte stands for.
  void evaluate(std::span<const std::byte> file, std::span<std::uint8_t> image) const;
  /// As above, for training. Requires: augments_bytes().
  void augment(std::span<const std::byte> file, Random random, std::span<std::uint8_t> image) const;
  /// Returns whether training images can be bytes: neither colour jitter nor erasing is on.
  [[nodiscard]] bool augments_bytes() const;
  /// The number of each byte value in each channel, (C, kByteValues).
  [[nodiscard]] std::span<const float> byte_numbers() const { return byte_numbers_; }

 private:
  using Pixels = std::vector<std::uint8_t>;  // (H, W, kPixelBytes)

  [[nodiscard]] Pixels evaluated(std::span<const std::byte> file) const;
  [[nodiscard]] Pixels cropped(std::span<const std::byte> file, Random& random) const;
  void separate(const Pixels& pixels, std::span<std::uint8_t> image) const;
  void standardise(const Pixels& pixels, std::span<float> image) const;
  void standardise_jittered(const Pixels& pixels, Random& random, std::span<float> image) const;
  void erase(Random& random, std::span<float> image) const;
  [[nodiscard]] nets::Extent extent() const { return {image_.height, image_.width}; }

  nets::Shape image_;
  PipelineOptions options_;
  std::vector<float> byte_numbers_;
};

/// Images of a data set as bytes; each byte stands for a number.
///
/// Thread safety: any number of threads may call any function at once.
class ByteImages {
 public:
  virtual ~ByteImages() = default;
  /// The number of each byte value in each channel, (C, kByteValues). Valid as long as the data
  /// set.
  [[nodiscard]] virtual std::span<const float> byte_numbers() const = 0;
  /// Does as Dataset::show(), with bytes for its numbers. If the label is negative, all numbers are
  /// 0 and the bytes are meaningless.
  virtual void show_bytes(std::size_t index, std::uint64_t epoch, std::span<std::uint8_t> bytes,
                          std::span<std::int32_t> labels) const = 0;
};

/// Byte images with one label each that look the same in every epoch.
class StoredByteImages : public ByteImages {
 public:
  void show_bytes(std::size_t index, std::uint64_t /*epoch*/, std::span<std::uint8_t> bytes,
                  std::span<std::int32_t> labels) const final {
    read_bytes(index, bytes);
    labels[0] = label(index);
  }

 private:
  virtual void read_bytes(std::size_t index, std::span<std::uint8_t> bytes) const = 0;
  /// As Dataset::label().
  [[nodiscard]] virtual std::int32_t label(std::size_t index) const = 0;
};

/// Returns the numbers from 0 to 1 that bytes stand for, for each channel.
[[nodiscard]] std::vector<float> unit_numbers(std::size_t channels);

}  // namespace spillway
