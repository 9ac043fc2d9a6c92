#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "nets/shape.h"
#include "src/io/data/dataset.h"

namespace spillway {

/// Resizes images of one shape to another: bilinear where an axis grows, averaging where it
/// shrinks. One channel is repeated into many; three become one by luminance (BT.601).
///
/// Thread safety: any number of threads may use one Resize at once.
class Resize {
 public:
  /// Throws: um::Error when the channels cannot be converted.
  Resize(const nets::Shape& from, const nets::Shape& to);

  /// Requires: `image` and `result` have as many numbers as the two shapes.
  void operator()(std::span<const float> image, std::span<float> result) const;

 private:
  /// One output position reads inputs first, first + 1, ... with these weights; their sum is 1.
  struct Taps {
    std::size_t first = 0;
    std::vector<float> weights;
  };
  using Axis = std::vector<Taps>;  // by output position

  [[nodiscard]] static Axis grow(std::size_t from, std::size_t to);
  [[nodiscard]] static Axis shrink(std::size_t from, std::size_t to);
  [[nodiscard]] static Axis mix_channels(std::size_t from, std::size_t to);
  [[nodiscard]] static Axis scale(std::size_t from, std::size_t to);

  nets::Shape from_;
  nets::Shape to_;
  Axis channels_;
  Axis rows_;
  Axis columns_;
};

/// Mean and standard deviation of each channel.
struct ChannelStatistics {
  std::vector<float> mean;
  std::vector<float> deviation;
};

/// Measures channels over all pixels of all images. A constant channel gets deviation 1.
[[nodiscard]] ChannelStatistics measure_channels(const Dataset& dataset);

/// A data set made ready for a network: channels are standardised (mean 0, deviation 1) and images
/// resized.
class PreparedDataset final : public Dataset, private ByteImages {
 public:
  /// `stored` holds values between 0 and 1. Requires: statistics for each of its channels; no pixel
  /// labels if images are resized.
  PreparedDataset(std::unique_ptr<Dataset> stored, ChannelStatistics statistics,
                  const nets::Shape& image);

  [[nodiscard]] std::string name() const override { return stored_->name(); }
  [[nodiscard]] nets::Shape image() const override { return image_; }
  [[nodiscard]] std::size_t classes() const override { return stored_->classes(); }
  [[nodiscard]] std::size_t size() const override { return stored_->size(); }
  void read(std::size_t index, std::span<float> image) const override;
  [[nodiscard]] std::int32_t label(std::size_t index) const override {
    return stored_->label(index);
  }
  [[nodiscard]] bool labels_pixels() const override { return stored_->labels_pixels(); }
  void labels(std::size_t index, std::span<std::int32_t> labels) const override {
    stored_->labels(index, labels);
  }
  /// Null where images are resized.
  [[nodiscard]] const ByteImages* as_bytes() const override;
  [[nodiscard]] std::string content_sha256() const override { return stored_->content_sha256(); }

 private:
  [[nodiscard]] std::span<const float> byte_numbers() const override { return byte_numbers_; }
  void show_bytes(std::size_t index, std::uint64_t epoch, std::span<std::uint8_t> bytes,
                  std::span<std::int32_t> labels) const override {
    stored_->as_bytes()->show_bytes(index, epoch, bytes, labels);
  }
  void standardise(std::span<float> image) const;

  std::unique_ptr<Dataset> stored_;
  ChannelStatistics statistics_;
  nets::Shape image_;
  Resize resize_;
  std::vector<float> byte_numbers_;  // empty where the stored images are not bytes
};

}  // namespace spillway
