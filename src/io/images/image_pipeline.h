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

/// What becomes of an image on its way to the network.
struct PipelineOptions {
  Augmentation augmentation;                               ///< of images to learn from
  float eval_crop = 1;                                     ///< central_crop()'s fraction, otherwise
  std::array<float, 3> mean{0.485F, 0.456F, 0.406F};       ///< subtracted: ImageNet's
  std::array<float, 3> deviation{0.229F, 0.224F, 0.225F};  ///< and divided by
};

/// Makes numbers for a network of image files: decodes, crops, resizes, changes and standardises
/// them. JPEG is decoded at the smallest scale that the result does not have to be enlarged from.
///
/// Thread safety: any number of threads may use one at once.
class ImagePipeline {
 public:
  /// Throws: um::Error unless `image` has one channel, which gets the luminance, or three.
  ImagePipeline(const nets::Shape& image, const PipelineOptions& options);

  [[nodiscard]] const nets::Shape& image() const { return image_; }
  /// Writes what an evaluation sees of the image in `file`, (C, H, W). Throws: as open_image().
  void evaluate(std::span<const std::byte> file, std::span<float> image) const;
  /// Writes what is learnt from, a function of the file and `random` alone. Throws: likewise.
  void augment(std::span<const std::byte> file, Random random, std::span<float> image) const;

  /// The same as bytes that stand for the same numbers.
  void evaluate(std::span<const std::byte> file, std::span<std::uint8_t> image) const;
  /// Likewise. Requires: augments_bytes().
  void augment(std::span<const std::byte> file, Random random, std::span<std::uint8_t> image) const;
  /// Whether what is learnt from is bytes: jittered colours are not, nor what is erased.
  [[nodiscard]] bool augments_bytes() const;
  /// Of each value of each channel, (C, kByteValues).
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

/// A data set's images as bytes, each of which stands for a number.
///
/// Thread safety: any number of threads may call any of the functions at once.
class ByteImages {
 public:
  virtual ~ByteImages() = default;
  /// Of each value of each channel, (C, kByteValues). Valid as long as the data set.
  [[nodiscard]] virtual std::span<const float> byte_numbers() const = 0;
  /// As Dataset::show(), which writes the numbers of these bytes; but where the label is negative,
  /// all numbers are 0, and bytes stand for nothing.
  virtual void show_bytes(std::size_t index, std::uint64_t epoch, std::span<std::uint8_t> bytes,
                          std::span<std::int32_t> labels) const = 0;
};

/// Those that every epoch shows as they are stored, with a label each.
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

/// Of images whose bytes stand for numbers from 0 to 1.
[[nodiscard]] std::vector<float> unit_numbers(std::size_t channels);

}  // namespace spillway
